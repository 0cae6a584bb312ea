"""K1: which tasks of a process sleep on a terminal, on what else, and what the others do instead."""

import re
import stat
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from controller_client.terminal_state.descriptors import has_foreign_socket, speak_for_others
from controller_client.terminal_state.proc_file import link_of, read_once, status_of
from controller_client.terminal_state.process_table import Process, Task, TaskStatus
from controller_client.terminal_state.relayed_terminal import InnerMaster
from controller_client.terminal_state.terminal_device import PTY_MULTIPLEXER, Identity, is_this_terminal
from controller_client.terminal_state.wait_set import SYSCALLS, WaitSet, is_passive, parse_call, syscall_name, wait_set

TTY_INDEX: Final = re.compile(rb"tty-index:\s*(\d+)")


class How(IntEnum):
    """How a task waits, best evidence first."""

    READ = 0
    """Plain read of the terminal."""
    READ_LOCK = 1
    """Somebody, of whatever user, holds the terminal's read lock."""
    POLL = 2
    """Sleeps until the terminal, or something that can only be its own, is readable."""
    WOKEN = 3
    """Ran when the sleepers of the terminal were woken."""
    MIXED = 4
    """Sleeps on the terminal and on sockets, pipes or terminals of others, or in an event loop that goes on by itself."""


@dataclass(slots=True)
class Waiter:
    """A task that would take the next input. ``task`` is None for a reader outside the tree, or one of several."""

    how: How
    comm: str
    pid: int = 0
    task: Task | None = None
    timeout_seconds: float | None = None
    """When it goes on by itself; None: never. Zero where that is not known."""
    is_loop: bool = False
    """An event loop: what else it does goes on while it sleeps here."""
    is_shared: bool = False
    """It sleeps on something besides that may speak for others."""

    @property
    def is_timed(self) -> bool:
        """Whether it looks at the keyboard for a while only."""
        return self.timeout_seconds is not None

    @property
    def counter(self) -> bytes:
        """Its run counter when it was seen, ``b""`` where it has none."""
        return self.task.counter if self.task else b""

    def describe(self) -> str:
        """For people, such as ``cat[12] read``."""
        name = f"{self.comm}[{self.pid}]" if self.pid else self.comm
        return f"{name} {self.how.name.lower()}{' with a timeout' if self.is_timed else ''}"


class Occupation(IntEnum):
    """What a task that waits for no terminal does."""

    RESTING = 0
    """Waits for another task, a child or a signal, or is stopped or dead."""
    WORKING = 1
    """Asleep in something that ends by itself: a timer, the network, a disk."""
    RUNNING = 2


@dataclass(slots=True)
class Inspection:
    """What the tasks of one process do about a terminal."""

    waiters: list[Waiter] = field(default_factory=list)
    masters: list[InnerMaster] = field(default_factory=list)
    """Masters of other terminals that it listens to: it is their relay."""
    is_running: bool = False


def inspect(process: Process, identity: Identity, session: int) -> Inspection:
    """Look at every task of a process; PermissionError when it may not be inspected."""
    found = Inspection()
    for task in process.tasks:
        try:
            _inspect_task(found, process, task, identity, session)
        except PermissionError:
            raise
        except OSError:
            continue
    return found


def occupation_of(task: Task) -> Occupation:
    """What a task does that is not one of the terminal's waiters."""
    try:
        call = parse_call(task.syscall())
    except PermissionError:
        return Occupation.RESTING if _is_asleep(task) else Occupation.RUNNING
    except OSError:
        return Occupation.RESTING
    if call is None or call[0] < 0:
        return Occupation.RESTING if call and _is_asleep(task) else Occupation.RUNNING
    number, arguments = call
    if is_passive(number, arguments) or (number in SYSCALLS.read and _link(task.pid, arguments[0]).startswith("pipe:")):
        return Occupation.RESTING
    return Occupation.RESTING if _waits_for_its_own(task.pid, number, arguments) else Occupation.WORKING


def _waits_for_its_own(pid: int, number: int, arguments: list[int]) -> bool:
    """Whether a task sleeps, for as long as it takes, until another thread of its process wakes it."""
    try:
        waiting = wait_set(pid, number, arguments)
        is_endless = not waiting.is_read and bool(waiting.descriptors) and waiting.timeout_seconds is None
        return is_endless and not speak_for_others(pid, waiting.descriptors) and not _has_timer(pid, waiting.descriptors)
    except OSError:
        return False


def activity_of(process: Process) -> str:
    """For people, what a process does: ``sleep[12] clock_nanosleep``."""
    status = process.status()
    if status.is_stopped:
        doing = "stopped"
    else:
        try:
            call = parse_call(process.tasks[0].syscall())
        except OSError:
            doing = "asleep" if status.is_asleep else "running"
        else:
            doing = syscall_name(call[0]) if call else "running"
    return f"{status.comm}[{process.pid}] {doing}"


def _is_asleep(task: Task) -> bool:
    try:
        return task.status().is_asleep
    except OSError:
        return True


def _inspect_task(found: Inspection, process: Process, task: Task, identity: Identity, session: int) -> None:
    call = parse_call(task.syscall())
    if call is None or call[0] < 0:
        # Outside of a system call: on the CPU, in a page fault, or dead.
        found.is_running = found.is_running or call is None or not task.status().is_asleep
        return
    waiting = wait_set(process.pid, *call)
    mine = [fd for fd in waiting.descriptors if _is_mine(found, process, fd, identity, session)]
    if not mine:
        return
    status = task.status()
    if not status.is_asleep:
        found.is_running = True
    elif status.is_live:
        found.waiters.append(_waiter(process, task, status, waiting, mine))


def _is_mine(found: Inspection, process: Process, fd: int, identity: Identity, session: int) -> bool:
    status = status_of(f"/proc/{process.pid}/fd/{fd}")
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == PTY_MULTIPLEXER:
        index = TTY_INDEX.search(read_once(f"/proc/{process.pid}/fdinfo/{fd}"))
        found.masters += [InnerMaster(process.pid, fd, int(index[1]))] if index else []
        return False
    return is_this_terminal(status, identity, is_own_session=process.session == session)


def _waiter(process: Process, task: Task, status: TaskStatus, waiting: WaitSet, mine: list[int]) -> Waiter:
    others = [fd for fd in waiting.descriptors if fd not in mine]
    if waiting.is_read:
        # A reader thread next to a thread on a socket: the input is only half of what it waits for.
        is_shared = len(process.tasks) > 1 and has_foreign_socket(process.pid)
    else:
        is_shared = bool(others) and speak_for_others(process.pid, others)
    is_loop = waiting.is_epoll
    how = How.READ if waiting.is_read else How.POLL
    if is_shared or (is_loop and waiting.timeout_seconds is not None):
        how = How.MIXED
    timeout_seconds = 0.0 if _has_timer(process.pid, others) else waiting.timeout_seconds
    return Waiter(how, status.comm, process.pid, task, timeout_seconds, is_loop, is_shared)


def _has_timer(pid: int, fds: list[int]) -> bool:
    return any("timerfd" in _link(pid, fd) for fd in fds)


def _link(pid: int, fd: int) -> str:
    return link_of(f"/proc/{pid}/fd/{fd}")
