"""The tasks of a process that wait for a terminal, what else they wait for, and the other tasks."""

import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import product
from typing import Final

from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.descriptors import (
    foreign_sockets,
    has_posix_timer,
    has_ring,
    has_timer,
    speak_for_others,
    speak_for_strangers,
)
from controller_client.terminal_state.kernel.occupation import (
    Company,
    Occupation,
    all_asleep,
    occupation_of,
)
from controller_client.terminal_state.kernel.proc_file import VANISHED, read_once, status_of
from controller_client.terminal_state.kernel.process_table import (
    Counters,
    ObservedProcess,
    status_or_none,
)
from controller_client.terminal_state.kernel.relayed_terminal import (
    Besides,
    InnerMaster,
    besides_of,
)
from controller_client.terminal_state.kernel.task import Task, TaskStatus
from controller_client.terminal_state.kernel.terminal_device import (
    PTY_MULTIPLEXER,
    Identity,
    is_this_terminal,
)
from controller_client.terminal_state.kernel.wait_set import (
    NO_DESCRIPTOR,
    SYSCALLS,
    WaitSet,
    call_of,
    is_known,
    wait_set,
    with_opened_sets,
)

TTY_INDEX: Final = re.compile(rb"tty-index:\s*(\d+)")


class How(IntEnum):
    """The way in which a task waits, best evidence first."""

    READ = 0
    """Plain read of the terminal."""
    READ_LOCK = 1
    """A task, of any user, holds the terminal's read lock."""
    POLL = 2
    """Sleeps until the terminal, or something that can only be its own, is readable."""
    WOKEN = 3
    """The task ran when the sleepers of the terminal were woken."""
    MIXED = 4
    """The task also sleeps on sockets, pipes or terminals of other processes, or in an event loop
    that continues by itself.
    """


@dataclass(slots=True)
class Waiter:
    """A task that would take the next input.

    ``task`` is None for a reader outside the tree, or one of several.
    """

    how: How
    comm: str
    pid: int = 0
    task: Task | None = None
    timeout_seconds: float | None = None
    """The time after which the task continues by itself; None: never. Zero where it is unknown."""
    is_loop: bool = False
    """An event loop: its other work continues while it sleeps here."""
    is_shared: bool = False
    """The task also sleeps on a descriptor that another process may make readable."""
    is_foreign: bool = False
    """One of these processes may be outside of the tree, on another host even."""
    behind: list["Waiter"] = field(default_factory=list)
    """The waiters of other terminals to which it passes its input on."""
    is_proven: bool = False
    """It passes input on, and the programs on all of these terminals wait for it."""
    is_beside_work: bool = False
    """It passes input on, and on some of these terminals are programs that may work."""
    listens_elsewhere: bool = False
    """The task also sleeps on other descriptors than the terminal."""
    besides: Besides | None = None
    """A relay: what else may set it to work, so that it may type an answer itself."""
    is_one_of_several: bool = False
    """The process also waits for something else, in this task or in another thread."""
    company: Company = field(default_factory=Company)
    """The tasks around it that work."""

    @property
    def is_timed(self) -> bool:
        """True if the task waits for the keyboard for a limited time."""
        return self.timeout_seconds is not None

    @property
    def counter(self) -> bytes:
        """The run counter of the task when it was seen, ``b""`` where it has none."""
        return self.task.counter if self.task else b""

    def words(self) -> list[str]:
        """Return the words of the command line; none if the process is gone or not known.

        Raises OSError when nothing is left to look with.
        """
        try:
            task = self.task
            raw = task.command_line() if task else read_once(f"/proc/{self.pid}/cmdline")
        except OSError as error:
            raise_shortage(error)
            return []
        # A process that wrote another text over its words leaves zero bytes behind it.
        text = raw.rstrip(b"\0").decode("utf-8", "replace")
        return text.split("\0") if text else []

    def describe(self) -> str:
        """Return a text for people, such as ``cat[12] read``."""
        name = f"{self.comm}[{self.pid}]" if self.pid else self.comm
        return f"{name} {self.how.name.lower()}{' with a timeout' if self.is_timed else ''}"


@dataclass(slots=True)
class Inspection:
    """The tasks of one process that have to do with a terminal."""

    waiters: list[Waiter] = field(default_factory=list)
    masters: list[InnerMaster] = field(default_factory=list)
    """Masters of other terminals that the process listens to: it is their relay."""
    relaying: list[Task] = field(default_factory=list)
    """The tasks that listen to masters and not to this terminal, for as long as it takes."""
    besides: list[Besides] = field(default_factory=list)
    """What else the tasks listen to that listen to masters."""
    is_running: bool = False
    is_opaque: bool = False
    """A task sleeps in a call of which the kernel does not say what it waits for."""
    is_unknown: bool = False
    """A task sleeps where it may take input of any terminal in a way that is not known here."""
    family: Sequence[int] = ()


def inspect(
    process: ObservedProcess, identity: Identity, session: int, family: Sequence[int] = ()
) -> Inspection:
    """Look at every task of a process.

    ``family`` are the pids of the other processes of its tree. Raises PermissionError when the
    process may not be inspected, OSError when nothing is left to look with.
    """
    found = Inspection(family=family)
    for task in process.tasks:
        try:
            _inspect_task(found, process, task, identity, session)
        except PermissionError:
            # What a dead thread did may not be seen, whoever asks.
            if not _has_ended(task):
                raise
        except OSError as error:
            raise_shortage(error)
    return found


def may_take_input(process: ObservedProcess, identity: Identity) -> bool:
    """Return whether a process may take input of a terminal at this moment.

    It may unless all of its tasks are seen asleep in calls that are known to take none, and it has
    no ring of requests, which takes input for it meanwhile. Raises OSError when nothing is left to
    look with.
    """
    try:
        found = inspect(process, identity, process.session)
        return bool(found.waiters) or found.is_running or found.is_unknown or has_ring(process.pid)
    except PermissionError:
        return True
    except VANISHED as error:
        if isinstance(error, OSError):
            raise_shortage(error)
        return False


def _has_ended(task: Task) -> bool:
    with suppress(OSError):
        return task.status().state in b"ZX"
    return False


def _inspect_task(
    found: Inspection, process: ObservedProcess, task: Task, identity: Identity, session: int
) -> None:
    call = call_of(task)
    if call is None or call[0] < 0:
        # Outside of a system call: on the CPU, in a page fault, or dead.
        status = None if call is None else task.status()
        found.is_running |= status is None or not status.is_asleep
        found.is_unknown |= status is not None and status.is_live
        return
    # The thread is asked, not its process: a thread can have descriptors of its own.
    waiting = wait_set(task.tid, *call)
    known = waiting.descriptors
    is_own = process.session == session
    count = len(found.masters)
    mine = [fd for fd in known if _is_mine(found, task, fd, identity, is_own_session=is_own)]
    if not mine and known and not waiting.is_read:
        waiting = with_opened_sets(task.tid, waiting)
        opened = [fd for fd in waiting.descriptors if fd not in known]
        mine = [fd for fd in opened if _is_mine(found, task, fd, identity, is_own_session=is_own)]
    besides = None
    if masters := found.masters[count:]:
        joined = {*mine, *(master.fd for master in masters)}
        others = [fd for fd in waiting.everything if fd not in joined]
        besides = besides_of(task, others, found.family, process.children)
        found.besides.append(besides)
    if not mine:
        found.is_opaque |= call[0] in SYSCALLS.opaque
        found.is_unknown |= not is_known(call[0])
        if besides and _only_relays(task, waiting, besides):
            found.relaying.append(task)
        return
    status = task.status()
    if not status.is_asleep:
        found.is_running = True
    elif status.is_live:
        mine += [fd for fd in waiting.besides if _is_written(task, fd, identity, is_own)]
        others = [fd for fd in waiting.everything if fd not in mine]
        waiter = _waiter(process, task, status, waiting, others, family=found.family)
        waiter.besides = besides
        found.waiters.append(waiter)


def _is_mine(
    found: Inspection, task: Task, fd: int, identity: Identity, *, is_own_session: bool
) -> bool:
    if fd == NO_DESCRIPTOR:
        return False
    status = status_of(f"/proc/{task.tid}/fd/{fd}")
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == PTY_MULTIPLEXER:
        index = TTY_INDEX.search(read_once(f"/proc/{task.tid}/fdinfo/{fd}"))
        found.masters += [InnerMaster(task.pid, fd, int(index[1]))] if index else []
        return False
    return is_this_terminal(status, identity, is_own_session=is_own_session)


def _only_relays(task: Task, waiting: WaitSet, besides: Besides) -> bool:
    is_clocked = waiting.is_timed or has_timer(task.tid, waiting.everything)
    return not is_clocked and not besides.has_strangers


def _is_written(task: Task, fd: int, identity: Identity, is_own_session: bool) -> bool:
    # True for this terminal, whose output is not what the program waits for.
    with suppress(FileNotFoundError):
        status = status_of(f"/proc/{task.tid}/fd/{fd}")
        return is_this_terminal(status, identity, is_own_session=is_own_session)
    return False


def _waiter(
    process: ObservedProcess,
    task: Task,
    status: TaskStatus,
    waiting: WaitSet,
    others: list[int],
    *,
    family: Sequence[int],
) -> Waiter:
    speaking = others
    if waiting.is_read and len(process.tasks) > 1:
        # A reader thread beside a thread on a socket: the process waits for both.
        speaking = foreign_sockets(task.tid)
    is_shared = bool(speaking) and speak_for_others(process.pid, speaking, family, thread=task.tid)
    is_loop = waiting.is_epoll
    # A timer sets the first thread to work. That one waits itself if it is the reader.
    is_clocked = has_timer(task.tid, others) or (not task.is_first and has_posix_timer(process.pid))
    how = How.READ if waiting.is_read else How.POLL
    if is_shared or is_clocked or (is_loop and waiting.timeout_seconds is not None):
        how = How.MIXED
    timeout_seconds = 0.0 if is_clocked else waiting.timeout_seconds
    return Waiter(
        how,
        status.comm,
        process.pid,
        task,
        timeout_seconds=timeout_seconds,
        is_loop=is_loop,
        is_shared=is_shared,
        is_foreign=is_shared and speak_for_strangers(task.tid, speaking, family),
        listens_elsewhere=bool(others),
        is_one_of_several=bool(others) or len(process.tasks) > 1,
    )


def go_on_with(relays: list[Waiter], waiters: list[Waiter], *, joins_others: bool) -> None:
    """Let the waiters behind relays count for no more than the relays do.

    What continues a relay without input may have it type an answer. ``joins_others``: it also
    listens to the programs on other terminals.
    """
    for relay, waiter in product(relays, waiters):
        if relay.is_timed:
            waiter.timeout_seconds = relay.timeout_seconds
        has_strangers = joins_others or (relay.besides is not None and relay.besides.has_strangers)
        if has_strangers or (relay.is_timed and relay.is_loop):
            waiter.how = How.MIXED
            waiter.is_shared = waiter.is_foreign = has_strangers


def signalled_waiter(process: ObservedProcess, family: Sequence[int]) -> list[Waiter]:
    """Return the waiter of a process that a signal tells of input; none while it works."""
    status = process.status()
    occupations = [occupation_of(task, family) for task in process.tasks]
    if max(occupations) > Occupation.PAUSING or not status.is_live:
        return []
    return [
        Waiter(
            How.WOKEN,
            status.comm,
            process.pid,
            process.tasks[0],
            is_foreign=True,
            listens_elsewhere=True,
            is_one_of_several=True,
        )
    ]


def lock_holder(
    group: list[ObservedProcess], identity: Identity, blind: list[ObservedProcess]
) -> list[Waiter]:
    """Return the process of a group that holds the read lock of a terminal, if one has to.

    A process that may not be inspected and is awake may copy its data at this moment: then the
    holder is only a guess.
    """
    is_at_work = not all(map(all_asleep, blind))
    able = [process for process in group if may_take_input(process, identity)]
    one = able[0] if len(able) == 1 else None
    status = status_or_none(one)
    # A reader thread beside others may be one of many things that its process waits for.
    has_threads = any(len(process.tasks) > 1 for process in group)
    return [
        Waiter(
            How.MIXED if has_threads or is_at_work else How.READ_LOCK,
            status.comm if status else "a process",
            one.pid if one and status else 0,
            is_foreign=is_at_work or (has_threads and bool(blind)),
        )
    ]


def woken_waiter(blind: list[ObservedProcess], before: Counters) -> list[Waiter]:
    """Return the process that ran when the sleepers of a terminal were woken, and sleeps again.

    Of one with several threads another thread may have run. Then it is only a guess.
    """
    for process in blind:
        for task in process.tasks:
            if before.get(task.tid, task.counter) != task.counter and all_asleep(process):
                status = status_or_none(process)
                comm = status.comm if status else "a process"
                is_foreign = len(process.tasks) > 1
                return [Waiter(How.WOKEN, comm, process.pid, task, is_foreign=is_foreign)]
    return []
