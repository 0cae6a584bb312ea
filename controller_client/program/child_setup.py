"""Sets up the process of a program between fork and exec, and explains a failure of that.

It is the same for programs on terminals and on pipes.
"""

import errno
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NoReturn

from controller_client.protocol.messages import ResourceLimits
from controller_client.system import prctl, resource_limits
from controller_client.system.start_failure import (
    StartFailed,
    cwd_not_found,
    from_os_error,
    program_not_executable,
    program_not_found,
)
from controller_client.system.users.two_users import become_program_user

_NOT_EXECUTABLE: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.ENOEXEC,
        errno.ETXTBSY,
        errno.EISDIR,
        errno.ELOOP,
        errno.ELIBBAD,
    }
)


@dataclass(frozen=True)
class Launch:
    """A program that is to run: the file ``program`` with the arguments ``argv``.

    The first of ``argv`` is the name that the program sees as its own. ``cwd_fd``, if any, is the
    very directory to run in, whatever ``cwd`` leads to by then. ``group_fd``, if any, is the open
    ``cgroup.procs`` of the control group to join. ``keeps_user``: set-uid programs that it runs
    give it no other user, and no rights. ``closes_terminal``: the name of its terminal opens it for
    no program of its user.
    """

    program: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    limits: ResourceLimits = resource_limits.NO_LIMITS
    cwd_fd: int | None = None
    group_fd: int | None = None
    keeps_user: bool = False
    closes_terminal: bool = False

    @property
    def is_plain(self) -> bool:
        """True if nothing is to be done between fork and exec that only our own code can do."""
        return (
            self.limits == resource_limits.NO_LIMITS
            and self.cwd_fd is None
            and self.group_fd is None
            and not self.keeps_user
        )


HOLDER_IGNORES: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE})
"""Signals that a holder ignores; so it survives when the daemon's own terminal hangs up."""
# Python ignores these for itself, and restores them in programs that it starts.
_PYTHON_IGNORES: Final = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


@lru_cache(maxsize=1)
def inherited_ignores() -> frozenset[int]:
    """Return the signals that this process ignores.

    Asked once, in the fork server, where it takes longer than everything else.
    """
    return frozenset(
        number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN
    )


def ignore_as_holder() -> None:
    """Give the signals that a holder ignores to a handler that does nothing.

    Unlike an ignored signal, such a signal has its default action again after an exec.
    """
    for number in (inherited_ignores() | HOLDER_IGNORES) - _PYTHON_IGNORES:
        signal.signal(number, _do_nothing)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def prepare(launch: Launch) -> None:
    """Join the group, enter the directory, set limits: what a new process has to do itself.

    Its user comes before the limits: the kernel lets nobody execute a program who takes a user with
    more processes than the limit. Raises ChildProcessError, whose text ``explain`` understands.
    """
    _step("group", lambda: os.write(launch.group_fd, b"0") if launch.group_fd is not None else 0)
    _step("account", become_program_user)
    _step("chdir", lambda: os.chdir(launch.cwd if launch.cwd_fd is None else launch.cwd_fd))
    _step("limit", lambda: resource_limits.apply(launch.limits))
    _step("user", lambda: prctl.keep_privileges() if launch.keeps_user else None)


def become_program(launch: Launch) -> NoReturn:
    """Turn this process, a fresh fork of a holder, into the program.

    Raises ChildProcessError like ``prepare``.
    """
    for number in _PYTHON_IGNORES:
        signal.signal(number, signal.SIG_DFL)
    os.umask(0o022)
    prepare(launch)
    _step("exec", lambda: os.execve(launch.program, list(launch.argv), dict(launch.env)))  # noqa: S606 (a shell only where needed)
    raise ChildProcessError(f"exec {errno.EIO}")


def explain(report: str, launch: Launch) -> StartFailed:
    """Make the failure from the report of the child, which names the failed step and its errno."""
    step, _, number = report.strip().partition(" ")
    code = int(number) if number.isdigit() else errno.EIO
    error = OSError(code, os.strerror(code))
    program = launch.argv[0]
    if step == "chdir":
        return cwd_not_found(launch.cwd, code)
    if step == "account":
        return from_os_error(error, "the program's user could not be taken")
    if step in {"group", "limit", "user"}:
        return from_os_error(error, "the program's limits could not be set")
    if code in {errno.ENOENT, errno.ENOTDIR}:
        return program_not_found(program, code)
    if code in _NOT_EXECUTABLE:
        return program_not_executable(program, code)
    return from_os_error(error, f"cannot execute {program}")


def _do_nothing(_number: int, _frame: object) -> None:
    """Handle the signal, so that it is not ignored."""


def _step(name: str, act: Callable[[], object]) -> None:
    try:
        act()
    except (OSError, ValueError) as error:
        number = error.errno if isinstance(error, OSError) else errno.EINVAL
        raise ChildProcessError(f"{name} {number or errno.EIO}") from None
