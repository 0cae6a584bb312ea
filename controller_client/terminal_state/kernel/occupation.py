"""The tasks that wait for no terminal: which of them work, and where they stand to a waiter."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.descriptors import (
    ends_of,
    has_timer,
    may_hold,
    processes_behind,
    speak_for_strangers,
    strays,
)
from controller_client.terminal_state.kernel.proc_file import VANISHED, link_of
from controller_client.terminal_state.kernel.process_table import ObservedProcess, ProcessTable
from controller_client.terminal_state.kernel.task import Task, TaskStatus
from controller_client.terminal_state.kernel.wait_set import (
    SYSCALLS,
    call_of,
    is_passive,
    is_pause,
    process_awaited,
    syscall_name,
    wait_set,
)


class Occupation(IntEnum):
    """The occupation of a task that waits for no terminal, the idlest first."""

    RESTING = 0
    """Waits for another task, a child or a signal, or is stopped or dead."""
    PAUSING = 1
    """Sleeps for a time and waits for nothing else, as threads do that keep house."""
    WORKING = 2
    """Asleep, but only until the network, a disk or a timer of an event loop continues it."""
    RUNNING = 3


def occupation_of(task: Task, family: Sequence[int] = ()) -> Occupation:
    """Return the occupation of a task that is not one of the terminal's waiters.

    ``family`` are the pids of the other processes of its tree. A task that may not be inspected
    works, for all that is known.
    """
    try:
        call = call_of(task)
    except PermissionError:
        return _occupation_of_hidden(_status_of(task))
    except OSError as error:
        raise_shortage(error)
        return Occupation.RESTING
    if call is None or call[0] < 0:
        return Occupation.RESTING if call and is_asleep(task) else Occupation.RUNNING
    number, arguments = call
    if is_passive(number, arguments) or (
        number in SYSCALLS.read
        and link_of(f"/proc/{task.tid}/fd/{arguments[0]}").startswith("pipe:")
    ):
        return Occupation.RESTING
    if is_pause(number, arguments):
        return Occupation.PAUSING
    return (
        Occupation.RESTING
        if _waits_for_its_tree(task.tid, number, arguments, family)
        else Occupation.WORKING
    )


def _occupation_of_hidden(status: TaskStatus | None) -> Occupation:
    if status is None or not status.is_live:
        return Occupation.RESTING
    return Occupation.WORKING if status.is_asleep else Occupation.RUNNING


def _waits_for_its_tree(pid: int, number: int, arguments: list[int], family: Sequence[int]) -> bool:
    # True if the task sleeps without a timeout until another task of its tree wakes it.
    try:
        waiting = wait_set(pid, number, arguments)
        fds = waiting.everything
        is_endless = bool(fds) and waiting.timeout_seconds is None
        return is_endless and not has_timer(pid, fds) and not speak_for_strangers(pid, fds, family)
    except OSError:
        return False


def _ends_awaited_by(task: Task) -> set[str]:
    """Return the names of the ends that can set off the descriptors that a task sleeps on."""
    try:
        call = call_of(task)
        waiting = wait_set(task.tid, *call) if call and call[0] >= 0 else None
        return ends_of(task.tid, waiting.everything) if waiting else set()
    except VANISHED as error:
        if isinstance(error, OSError):
            raise_shortage(error)
        return set()


def _children_awaited_by(task: Task, children: Sequence[int]) -> Sequence[int]:
    """Return the children of its process whose end may set a task to work.

    A task in a wait for any child goes on to wait for the others.
    """
    try:
        call = call_of(task)
        if call is None or call[0] < 0:
            return ()
        if (pid := process_awaited(*call)) is not None:
            return (pid,)
        descriptors = wait_set(task.pid, *call).descriptors
        return [pid for fd in descriptors for pid in processes_behind(task.pid, fd, children)]
    except VANISHED as error:
        if isinstance(error, OSError):
            raise_shortage(error)
        return ()


def is_asleep(task: Task) -> bool:
    """Return whether a task is not runnable; a task that is gone is not."""
    status = _status_of(task)
    return status is None or status.is_asleep


def _status_of(task: Task) -> TaskStatus | None:
    try:
        return task.status()
    except OSError as error:
        raise_shortage(error)
        return None


def is_hidden(task: Task) -> bool:
    """Return whether a task may not be inspected."""
    try:
        task.syscall()
    except PermissionError:
        return True
    except OSError as error:
        raise_shortage(error)
    return False


def all_asleep(process: ObservedProcess) -> bool:
    """Return whether no task of a process is runnable."""
    return all(map(is_asleep, process.tasks))


def is_asleep_beside(group: Sequence[ObservedProcess], table: ProcessTable) -> bool:
    """Return whether no task of the tree works, those of ``group`` left out.

    Equal counters at a later look mean that none of them has run.
    """
    others = (process for process in table.processes if process not in group)
    return all(task.has_slept() for process in others for task in process.tasks)


def activity_of(process: ObservedProcess) -> str:
    """Return a text for people about a process, such as ``sleep[12] clock_nanosleep``."""
    status = process.status()
    if status.is_stopped:
        doing = "stopped"
    else:
        try:
            call = call_of(process.tasks[0])
        except OSError:
            doing = "asleep" if status.is_asleep else "running"
        else:
            doing = syscall_name(call[0]) if call else "running"
    return f"{status.comm}[{process.pid}] {doing}"


class Work(NamedTuple):
    """A task that does not rest."""

    process: ObservedProcess
    task: Task
    occupation: Occupation


@dataclass(slots=True)
class Company:
    """The busiest tasks around a waiter, by their place in the tree."""

    first_thread: Occupation = Occupation.RESTING
    """The first thread of its process, if the waiter is another one."""
    threads: Occupation = Occupation.RESTING
    """The other threads of its process."""
    children: Occupation = Occupation.RESTING
    """The processes below, in the tree."""
    parents: Occupation = Occupation.RESTING
    has_detached_child: bool = False
    """A process below works in another session, where no shell puts its jobs."""


def company_of(pid: int, work: list[Work], table: ProcessTable) -> Company:
    """Return the company of a waiter of process ``pid``; ``work`` has no waiters in it."""
    company = Company()
    if not work:
        return company
    below, above = table.descendants_of(pid), table.ancestors_of(pid)
    session = table.session_of(pid)
    for each in work:
        process, occupation = each.process, each.occupation
        if process.pid == pid and each.task.is_first:
            company.first_thread = occupation
        elif process.pid == pid:
            company.threads = max(company.threads, occupation)
        elif occupation is Occupation.PAUSING and not each.task.is_first:
            # The housekeeping of another process.
            continue
        elif process.pid in below:
            company.children = max(company.children, occupation)
            company.has_detached_child |= process.session != session
        elif process.pid in above:
            company.parents = max(company.parents, occupation)
    return company


def work_of_others(
    table: ProcessTable, concerned: set[int], waiters: set[int], pgrps: set[int]
) -> list[Work]:
    """Return the tasks that do not rest, but for the threads ``concerned``.

    ``waiters`` are the pids of the waiters, ``pgrps`` the process groups of the foreground.
    """
    work: list[Work] = []
    above = table.ancestors_of(*waiters)
    for process in table.processes:
        family = table.family_of(process.pid)
        for task in process.tasks:
            if task.tid in concerned:
                continue
            occupation = occupation_of(task, family)
            if occupation is Occupation.WORKING and process.pid in above and is_hidden(task):
                # A parent waits for its child.
                occupation = Occupation.RESTING
            if occupation is Occupation.RESTING and _waits_for_outside(table, process, task, pgrps):
                occupation = Occupation.WORKING
            if task.read_counter() != task.counter:
                # A task that ran since the walk may also have forked.
                occupation = Occupation.RUNNING
            if occupation is not Occupation.RESTING:
                work.append(Work(process, task, occupation))
    apart = {each.process.pid for each in work if each.process.pgrp not in pgrps}
    return work + (_parents_of(table, apart, waiters, pgrps) if apart else [])


def _parents_of(
    table: ProcessTable, apart: set[int], waiters: set[int], pgrps: set[int]
) -> list[Work]:
    """Return the tasks of the foreground that wait for the end of a child that works apart."""

    def is_at_work(child: int) -> bool:
        branch = table.descendants_of(child) | {child}
        return bool(branch & apart) and not branch & waiters

    return [
        Work(process, task, Occupation.WORKING)
        for process in table.processes
        for task in process.tasks
        if process.pgrp in pgrps
        and any(map(is_at_work, _children_awaited_by(task, process.children)))
    ]


def _waits_for_outside(
    table: ProcessTable, process: ObservedProcess, task: Task, pgrps: set[int]
) -> bool:
    """Return whether a process can set a task to work whose own work is not seen.

    That is a process outside of the foreground, but for a multiplexer, whose terminals are looked
    at. Another process outside waits for its own.
    """
    if not (ends := _ends_awaited_by(task)):
        return False
    is_inside = process.pgrp in pgrps
    apart = [
        other.pid
        for other in table.processes
        if is_inside and other.pgrp not in pgrps and not table.is_adopted(other.pid)
    ]
    return may_hold(apart + strays([other.pid for other in table.processes]), ends)
