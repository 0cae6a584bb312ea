"""The check whether a relay (sudo, script, expect) has passed on all output of its inner terminal.

Output of an inner program reaches the inner master before the relay wakes. So a relay that sleeps
may still have output to read. The inner master is borrowed from the relay for one poll, which first
delivers output that is still in the kernel.
"""

import os
import select
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from controller_client.system.users.two_users import opened_by_program_user
from controller_client.terminal_state.kernel.descriptors import (
    ends_of,
    is_of_signals,
    may_hold,
    speak_for_strangers,
    strays,
)
from controller_client.terminal_state.kernel.process_table import (
    ObservedProcess,
    ProcessTable,
    status_or_none,
)
from controller_client.terminal_state.kernel.task import Task
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


class Besides(NamedTuple):
    """The things that may set a relay to work besides the terminals that it joins."""

    has_strangers: bool = False
    """Something outside of the tree may."""
    ends: frozenset[str] = frozenset()
    """The names of pipes, events and far ends of sockets that may, if a process holds one."""
    children: frozenset[int] = frozenset()
    """The processes of the relay itself, whose end may."""

    def may_come_from(self, workers: set[int], waiters: set[int], table: ProcessTable) -> bool:
        """Return whether processes that work may set the relay to work.

        What works below the program that waits is that program's own.
        """
        branches = (table.descendants_of(child) | {child} for child in self.children)
        return any(branch & workers and not branch & waiters for branch in branches) or (
            bool(self.ends) and may_hold(workers, self.ends)
        )


def besides_of(
    task: Task, fds: list[int], family: Sequence[int], children: Sequence[int]
) -> Besides:
    """Return what else may set a relay to work, a task of which sleeps on ``fds`` too.

    ``family`` are the pids of the other processes of its tree. A descriptor of signals is left out:
    relays have one, which tells of alarms as well, but they set no alarm.
    """
    own = frozenset(children)
    speaking = [fd for fd in fds if not is_of_signals(task.tid, fd)]
    if not speaking:
        return Besides(children=own)
    ends = frozenset(ends_of(task.tid, speaking))
    is_for_strangers = speak_for_strangers(task.tid, speaking, family)
    return Besides(is_for_strangers or may_hold(strays([task.pid, *family]), ends), ends, own)


def inner_session(
    processes: list[ObservedProcess],
    group: list[ObservedProcess],
    masters: list[InnerMaster],
    below: AbstractSet[int] = frozenset(),
) -> list[ObservedProcess]:
    """Return the foreground of the terminal behind a relay in ``group`` (sudo, script, apt).

    Empty if there is none. Without ``masters`` it is another terminal that one of the processes
    ``below`` the relay has.
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
        and (status.tty in devices if devices else process.pid in below)
    ]
    return [process for process in found if process.session == found[0].session]


def outputs_under_way(
    masters: list[InnerMaster], device: int, *, is_worth_a_fork: bool
) -> list[bool | None]:
    """Return ``has_output_under_way`` for each master of one inner terminal."""
    return [
        has_output_under_way(master, is_worth_a_fork=is_worth_a_fork)
        for master in masters
        if master.device == device
    ]


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
