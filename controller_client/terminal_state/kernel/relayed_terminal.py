"""The check whether a relay (sudo, script, expect) has passed on all output of its inner terminal.

Output of an inner program reaches the inner master before the relay wakes. So a relay that sleeps
may still have output to read. The inner master is borrowed from the relay for one poll, which first
delivers output that is still in the kernel.
"""

import os
import select
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from controller_client.system.users.two_users import opened_by_program_user
from controller_client.terminal_state.kernel.process_table import ObservedProcess, status_or_none
from controller_client.terminal_state.kernel.terminal_device import PTS_MAJOR

if TYPE_CHECKING:
    from ctypes import CDLL

PIDFD_GETFD: Final = 438
"""The number of the system call on every architecture; Python has no wrapper for it."""


class InnerMaster(NamedTuple):
    """A master that a relay listens to, by the relay's pid and descriptor.

    ``number`` is that of the inner terminal, as in ``/dev/pts/3``.
    """

    pid: int
    fd: int
    number: int

    @property
    def device(self) -> int:
        """The device number of the inner terminal."""
        return os.makedev(PTS_MAJOR, self.number)


def inner_session(
    processes: list[ObservedProcess], group: list[ObservedProcess], masters: list[InnerMaster]
) -> list[ObservedProcess]:
    """Return the foreground of the terminal behind a relay in ``group`` (sudo, script, apt).

    Empty if there is none. Without ``masters`` any other terminal of the tree is one behind.
    """
    own = {process.session for process in group}
    devices = {master.device for master in masters}
    found = [
        process
        for process in processes
        if process.session not in own
        and (status := status_or_none(process))
        and status.tty
        and status.pgrp == status.foreground_pgrp
        and (status.tty in devices or not devices)
    ]
    return [process for process in found if process.session == found[0].session]


def has_output_under_way(master: InnerMaster, *, is_worth_a_fork: bool = False) -> bool | None:
    """Return whether the relay still has output to read; None when that cannot be known."""
    take = borrow_by_fork if is_worth_a_fork else borrow
    borrowed = take(master.pid, master.fd)
    if borrowed is None:
        return None
    try:
        poller = select.poll()
        poller.register(borrowed, select.POLLIN | select.POLLPRI)
        return bool(poller.poll(0))
    finally:
        os.close(borrowed)


def borrow(pid: int, fd: int) -> int | None:
    """Return a descriptor of another process as one of ours, None if that may not be had."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        borrowed: int = _libc().syscall(PIDFD_GETFD, pidfd, fd, 0)
    except (ImportError, OSError):
        return None
    finally:
        os.close(pidfd)
    return borrowed if borrowed >= 0 else None


def borrow_by_fork(pid: int, fd: int) -> int | None:
    """Return what ``borrow`` does, also where this process only acts as the program's user.

    The kernel gives a descriptor to whoever may trace the process, by the real user.
    """
    return opened_by_program_user(lambda: borrow(pid, fd))


@cache
def _libc() -> "CDLL":
    # Imported only where a relay is met: ctypes would double the memory that this package costs
    # every other session.
    from ctypes import CDLL, c_long

    libc = CDLL(None)
    libc.syscall.argtypes = [c_long] * 4
    return libc
