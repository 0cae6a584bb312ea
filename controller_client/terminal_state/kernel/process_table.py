"""The tree of processes below a session's leader, with a counter of how often each task has run."""

import os
from collections.abc import Collection, Iterator

from controller_client.system.absence import is_shortage, raise_shortage
from controller_client.terminal_state.kernel.descriptors import strays
from controller_client.terminal_state.kernel.proc_file import ProcFile, numbers_in
from controller_client.terminal_state.kernel.task import Task, TaskStatus, all_unmoved

Counters = dict[int, bytes]
"""Run counter of each task by thread id; ``b""`` once the task is gone."""


class ObservedProcess:
    """One process with its threads; the first thread names the process."""

    __slots__ = ("_task_directory", "children", "pgrp", "pid", "session", "tasks")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._task_directory = ProcFile(f"/proc/{pid}/task")
        self.pgrp = 0
        self.session = 0
        self.children: list[int] = []
        self.tasks: list[Task] = [Task(pid, pid)]

    def refresh(self) -> list[int]:
        """Bring group, session, threads and counters up to date, and return the pids of children.

        Raises OSError when the process is gone.
        """
        self.pgrp = os.getpgid(self.pid)
        self.session = os.getsid(self.pid)
        self._read_counters()
        # A thread that is not in the list yet shows in no counter: its parent may have gone to
        # sleep before its own was read. After this list it shows.
        while self._refresh_threads():
            self._read_counters()
        return self.children

    def _read_counters(self) -> None:
        self.children = []
        for task in self.tasks:
            task.counter = task.read_counter()
            self.children += task.children()

    def _refresh_threads(self) -> bool:
        """Bring the list of threads up to date, and return whether new ones are in it."""
        # Two links of the directory are its own, each other is a thread. The number alone does not
        # show that one of several threads has replaced another.
        if len(self.tasks) == 1 and self._task_directory.status().st_nlink == 3:
            return False
        known = {task.tid: task for task in self.tasks}
        tids = numbers_in(f"/proc/{self.pid}/task") or [self.pid]
        self.tasks = [known[tid] if tid in known else Task(self.pid, tid) for tid in tids]
        for tid in known.keys() - set(tids):
            known[tid].close()
        return not known.keys() >= set(tids)

    def status(self) -> TaskStatus:
        """Return the status of the first thread."""
        return self.tasks[0].status()

    def close(self) -> None:
        """Close the files that are kept open."""
        self._task_directory.close()
        for task in self.tasks:
            task.close()


class ProcessTable:
    """The tree of one session, walked through the world-readable ``children`` files."""

    def __init__(self, leader_pid: int) -> None:
        self._leader = leader_pid
        self._known: dict[int, ObservedProcess] = {}
        # Multiplexers; members of the foreground whose parents have died; others in its groups.
        self._adopted: list[int] = []
        self._orphans: list[int] = []
        self._left_behind: list[int] = []
        self._holder = Task(os.getpid(), os.getpid())

    @property
    def processes(self) -> list[ObservedProcess]:
        """The processes of the tree at the last refresh."""
        return list(self._known.values())

    def has_live_leader(self) -> bool:
        """Return whether the program that was started has not ended."""
        leader = self._known.get(self._leader)
        try:
            return leader is not None and any(
                task.status().state not in b"ZX" for task in leader.tasks
            )
        except OSError as error:
            raise_shortage(error)
            return False

    def family_of(self, pid: int) -> list[int]:
        """Return the pids of the other processes of the tree."""
        return [other for other in self._known if other != pid]

    def descendants_of(self, *pids: int) -> set[int]:
        """Return the pids below some processes, as of the last refresh."""
        found: set[int] = set()
        todo = list(pids)
        while todo:
            process = self._known.get(todo.pop())
            new = set(process.children) - found if process else set()
            found |= new
            todo += new
        return found

    def ancestors_of(self, *pids: int) -> set[int]:
        """Return the pids above some processes, as of the last refresh."""
        parents = {child: pid for pid, process in self._known.items() for child in process.children}
        found: set[int] = set()
        for below in pids:
            pid = below
            while pid in parents and parents[pid] not in found:
                pid = parents[pid]
                found.add(pid)
        return found

    def session_of(self, pid: int) -> int:
        """Return the session of a process, 0 if it is not in the tree."""
        process = self._known.get(pid)
        return process.session if process else 0

    def has_only(self, tasks: Collection[Task]) -> bool:
        """Return whether the tree is one process whose threads are ``tasks``."""
        if len(self._known) != 1:
            return False
        (process,) = self._known.values()
        return len(process.tasks) == len(tasks)

    def tasks(self) -> Iterator[Task]:
        """Yield every thread of the tree at the last refresh."""
        for process in self._known.values():
            yield from process.tasks

    def refresh(self) -> None:
        """Walk the tree again and read every counter.

        Raises OSError when nothing is left to look with.
        """
        before, self._known = self._known, {}
        pending = [self._leader, *self._adopted, *self._orphans, *self._left_behind]
        while pending:
            pid = pending.pop()
            if pid in self._known:
                continue
            process = before.pop(pid, None) or ObservedProcess(pid)
            try:
                pending += process.refresh()
            except OSError as error:
                process.close()
                if is_shortage(error):
                    # Known processes stay known, so that ``close`` still closes their files.
                    self._known.update(before)
                    raise
                continue
            self._known[pid] = process
        for gone in before.values():
            gone.close()
        self._adopted = [pid for pid in self._adopted if pid in self._known]
        self._orphans = [pid for pid in self._orphans if pid in self._known]

    def group(self, pgrp: int) -> list[ObservedProcess]:
        """Return the members of a process group.

        A member whose parents died is found by the pid of the group or by a scan, once.
        """
        members = [process for process in self._known.values() if process.pgrp == pgrp]
        if members or pgrp <= 0:
            return members
        for pid in orphans_of_group(pgrp):
            if pid not in self._orphans:
                self._orphans.append(pid)
        if self._orphans:
            self.refresh()
        return [process for process in self._known.values() if process.pgrp == pgrp]

    def adopt(self, pid: int) -> None:
        """Count a process and all below it as part of the tree, from the next refresh on."""
        if pid not in self._known and pid not in self._adopted:
            self._adopted.append(pid)

    def adopt_orphans(self, pgrps: Collection[int]) -> bool:
        """Count orphans of process groups as part of the tree, from the next refresh.

        Returns whether there are new ones. They have come to the holder, which is this process.
        """
        if self._known.keys() >= set(self._holder.children()):
            return False
        new = [pid for pid in strays(self._known.keys()) if _is_live_in(pid, pgrps)]
        self._left_behind += new
        return bool(new)

    def leave_orphans(self, pgrps: Collection[int]) -> None:
        """Count orphans that are in none of these groups no longer, from the next refresh."""
        self._left_behind = [
            pid
            for pid in self._left_behind
            if pid in self._known and self._known[pid].pgrp in pgrps
        ]

    def is_adopted(self, pid: int) -> bool:
        """Return whether a process was adopted, and is not below the leader by birth."""
        return pid in self._adopted

    def read_counters(self) -> Counters:
        """Return the counters now, of the tasks known since the last refresh."""
        return {task.tid: task.read_counter() for task in self.tasks()}

    def is_unmoved(self) -> bool:
        """Return whether no task of the tree went on or off the CPU since the last refresh."""
        return bool(self._known) and all_unmoved(self.tasks())

    def is_still(self, asleep: Collection[Task]) -> bool:
        """Return whether no task of the tree is runnable, or has run since the last refresh.

        ``asleep`` are tasks that were seen asleep since then, and have not run after that. Any
        other task that is woken for another processor shows its call and its counter as before
        until that processor takes the task up. Only its state tells that already.
        """
        if self.has_only(asleep):
            return True
        others = (task for task in self.tasks() if task not in asleep)
        return not any(task.is_runnable() for task in others) and self.is_unmoved()

    def close(self) -> None:
        """Close every file that is kept open."""
        for process in self._known.values():
            process.close()
        self._known = {}
        self._holder.close()


def status_or_none(process: ObservedProcess | None) -> TaskStatus | None:
    """Return the status of a process, None when there is none or it is gone.

    Raises OSError when nothing is left to look with.
    """
    try:
        return process.status() if process else None
    except OSError as error:
        raise_shortage(error)
        return None


def orphans_of_group(pgrp: int) -> list[int]:
    """Return pids of a process group whose members have no living parent in the tree."""
    if group_of(pgrp) == pgrp:
        return [pgrp]
    return [pid for pid in all_pids() if group_of(pid) == pgrp]


def _is_live_in(pid: int, pgrps: Collection[int]) -> bool:
    process = ObservedProcess(pid)
    try:
        status = status_or_none(process)
    finally:
        process.close()
    return status is not None and status.is_live and status.pgrp in pgrps


def group_of(pid: int) -> int:
    """Return the group of a process, 0 when it is gone."""
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def all_pids() -> list[int]:
    """Return the pid of every process that we can see."""
    return numbers_in("/proc")
