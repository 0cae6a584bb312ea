"""The two users of a holder: its own, which is the daemon's, and the one its program runs as.

A holder *acts as* the program's user. Its effective user is the program's, and its real and saved
users stay the daemon's. The kernel then gives it both sides without a capability:

* It reads the ``/proc`` of its program, signals the program, and owns the program's terminal.
* A program can neither signal nor trace it, because that depends on its real and saved users.
* In ``as_owner`` its files are the daemon's.
* A fork of it becomes the program's user for good with ``become_program_user``.

Only the fork server needs rights: CAP_SETUID and CAP_SETGID. A holder gives its copy up when it
begins to act. Without two users nothing here does anything. ADR 0029 has the reasons.
"""

import ctypes
import os
import pwd
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, NoReturn, Self

from controller_client.system import prctl

# Older versions of the C library open no terminal for a process whose real user is another.
_LEAST_GLIBC: Final = (2, 33)
_VERSION_3: Final = 0x20080522
_SETGID: Final = 1 << 6
_SETUID: Final = 1 << 7
_RIGHTS: Final = _SETUID | _SETGID
_OPEN_SECONDS: Final = 0.25
"""A fork that a program has stopped, say, opens nothing in this time."""
_libc = ctypes.CDLL(None, use_errno=True)


class ProgramUser(NamedTuple):
    """The user that programs run as."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]

    @classmethod
    def named(cls, name: str) -> Self:
        """Look the user up. Raises KeyError."""
        entry = pwd.getpwnam(name)
        return cls(name, entry.pw_uid, entry.pw_gid, tuple(os.getgrouplist(name, entry.pw_gid)))


class _Header(ctypes.Structure):
    _fields_: ClassVar = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Set(ctypes.Structure):
    _fields_: ClassVar = [
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    ]


class _Process:
    """The state of this process. ``owner``: its own user and group, once it acts as another."""

    owner: tuple[int, int] | None = None


def why_impossible() -> str | None:
    """Say why this process cannot run programs as another user; None if it can."""
    if not sys.platform.startswith("linux"):
        return "only Linux can run programs as another user than the daemon's"
    if not _has_rights():
        return (
            "to run programs as another user the daemon needs CAP_SETUID and CAP_SETGID, which "
            "AmbientCapabilities= of its systemd unit gives"
        )
    _, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    if version and tuple(map(int, version.split(".")[:2])) < _LEAST_GLIBC:
        return f"to run programs as another user takes glibc 2.33 or newer; this is {version}"
    return None


def give_up_rights() -> None:
    """Take from this thread, and from what it starts, the rights to become another user.

    Root keeps them: root could take them back. Raises OSError.
    """
    if not sys.platform.startswith("linux") or os.geteuid() == 0:
        return
    low, high = _capabilities()
    if (low.permitted | low.inheritable) & _RIGHTS:
        low.effective &= ~_RIGHTS
        low.permitted &= ~_RIGHTS
        # What is not inheritable is not ambient either.
        low.inheritable &= ~_RIGHTS
        _set_capabilities(low, high)


def keep_rights_to_itself() -> None:
    """Let programs that this process executes have none of its rights. Raises OSError."""
    low, high = _capabilities()
    low.inheritable = high.inheritable = 0
    _set_capabilities(low, high)


def act_as(user: ProgramUser) -> None:
    """Let this process act as the user from now on, without any rights of its own.

    Raises OSError.
    """
    owner = os.getuid(), os.getgid()
    os.setgroups(user.groups)
    os.setresgid(owner[1], user.gid, owner[1])
    os.setresuid(owner[0], user.uid, owner[0])
    _set_capabilities(_Set(), _Set())
    prctl.hide_memory()
    _Process.owner = owner


def program_ids() -> tuple[int, int] | tuple[None, None]:
    """Return the user and group that programs have to take; None if they are this process's own."""
    return (None, None) if _Process.owner is None else (os.geteuid(), os.getegid())


@contextmanager
def as_owner() -> Iterator[None]:
    """For a block, make and open files as this process's own user."""
    if _Process.owner is None:
        yield
        return
    try:
        _set_file_user(*_Process.owner)
        yield
    finally:
        _set_file_user(os.geteuid(), os.getegid())


def become_program_user() -> None:
    """Be nobody else than the program's user from now on, if this process acts as that user.

    Raises OSError.
    """
    user, group = program_ids()
    if user is not None and group is not None:
        os.setresgid(group, group, group)
        os.setresuid(user, user, user)


def opened_by_program_user(open_one: Callable[[], int | None]) -> int | None:
    """Return the descriptor that ``open_one`` opens as nobody else than the program's user.

    Some calls ask for the real user, which a holder keeps. A fork makes them, and sends back what
    it opened. None if it opened nothing, or was kept from it.
    """
    if _Process.owner is None:
        return open_one()
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            try:
                pid = os.fork()
            except OSError:
                return None
            if pid == 0:
                _open_and_exit(open_one, theirs)
        ours.settimeout(_OPEN_SECONDS)
        try:
            opened = socket.recv_fds(ours, 1, 1)[1]
        except OSError:
            opened = []
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for descriptor in opened:
        os.set_inheritable(descriptor, False)
    return opened[0] if opened else None


def _open_and_exit(open_one: Callable[[], int | None], answers: socket.socket) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        become_program_user()
        with suppress(OSError):
            if (opened := open_one()) is not None:
                socket.send_fds(answers, [b"+"], [opened])
    finally:
        os._exit(0)


def may_write(user: ProgramUser, directory: Path) -> bool:
    """Tell whether the mode of a directory lets the user replace its entries. Raises OSError."""
    status = directory.stat()
    if user.uid == status.st_uid:
        return True
    bit = stat.S_IWGRP if status.st_gid in user.groups else stat.S_IWOTH
    return bool(status.st_mode & bit) and not status.st_mode & stat.S_ISVTX


def may_enter(user: ProgramUser, directory: Path) -> bool:
    """Tell whether the mode of a directory lets the user use what is in it. Raises OSError."""
    status = directory.stat()
    if user.uid == status.st_uid:
        return bool(status.st_mode & stat.S_IXUSR)
    return bool(status.st_mode & (stat.S_IXGRP if status.st_gid in user.groups else stat.S_IXOTH))


def can_become_others(pid: int) -> bool:
    """Tell whether a process has the rights to become another user. Raises OSError."""
    status = Path(f"/proc/{pid}/status").read_text()
    (permitted,) = (line for line in status.splitlines() if line.startswith("CapPrm:"))
    return int(permitted.split()[1], 16) & _RIGHTS == _RIGHTS


def acts_as_another(pid: int) -> bool:
    """Tell whether a process acts as another user than its own. Raises OSError."""
    if not sys.platform.startswith("linux"):
        return False
    status = Path(f"/proc/{pid}/status").read_text()
    (users,) = (line.split() for line in status.splitlines() if line.startswith("Uid:"))
    return users[1] != users[2]


def _set_file_user(user: int, group: int) -> None:
    _libc.setfsgid(group)
    _libc.setfsuid(user)


def _has_rights() -> bool:
    low, _ = _capabilities()
    return bool(low.effective & _RIGHTS == _RIGHTS)


def _capabilities() -> tuple[_Set, _Set]:
    sets = (_Set * 2)()
    if _libc.capget(ctypes.byref(_Header(_VERSION_3, 0)), sets):
        raise OSError(ctypes.get_errno(), "capget")
    return sets[0], sets[1]


def _set_capabilities(low: _Set, high: _Set) -> None:
    if _libc.capset(ctypes.byref(_Header(_VERSION_3, 0)), (_Set * 2)(low, high)):
        raise OSError(ctypes.get_errno(), "capset")
