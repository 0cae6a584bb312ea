"""One thread of a process: its state, and what its files of ``/proc`` say.

``schedstat`` is world-readable and changes whenever a task goes on or off the CPU. So equal
counters before and after a set of probes prove that a sleeping task slept through all of them. A
task that is *on* the CPU may show the same counter for a clock tick: equal counters prove nothing
about a task that was not seen asleep.
"""

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.proc_file import ProcFile

ASLEEP_STATES: Final = frozenset(b"STtZX")
RUNNABLE: Final = ord("R")


class TaskStatus(NamedTuple):
    """The world-readable part of a task's state.

    ``state`` is the kernel's letter as an int (``ord``). ``numbers`` is the text behind it, which
    is taken apart when it is asked for: a look makes dozens of these, and mostly needs none of it.
    """

    comm: str
    state: int
    numbers: bytes

    @property
    def pgrp(self) -> int:
        """The process group that the task belongs to."""
        return self._number(1)

    @property
    def tty(self) -> int:
        """The device number of the controlling terminal, 0 without one."""
        tty = self._number(3)
        # The kernel folds the number its own way: minor bits 0-7 and 20-31, major bits 8-19.
        return os.makedev((tty >> 8) & 0xFFF, (tty & 0xFF) | ((tty >> 12) & 0xFFF00)) if tty else 0

    @property
    def foreground_pgrp(self) -> int:
        """The process group in the foreground of the controlling terminal, -1 without one."""
        return self._number(4)

    def _number(self, place: int) -> int:
        return int(self.numbers.split(None, place + 1)[place])

    @property
    def is_asleep(self) -> bool:
        """True if asleep, stopped or dead: not runnable, nor in a disk wait or a page fault."""
        return self.state in ASLEEP_STATES

    @property
    def is_stopped(self) -> bool:
        """True if stopped by job control or a debugger."""
        return self.state in b"Tt"

    @property
    def is_live(self) -> bool:
        """True if the task is neither stopped nor dead."""
        return self.state not in b"TtZX"


def parse_status(raw: bytes) -> TaskStatus:
    """Read a ``stat`` line; the name in it may hold spaces and parentheses.

    Raises ValueError or IndexError for any other text.
    """
    end = raw.rindex(b")")
    comm = raw[raw.index(b"(") + 1 : end].decode("utf-8", "replace")
    return TaskStatus(comm, raw[end + 2], raw[end + 4 :])


class Task:
    """One thread of a process, with its files of /proc."""

    __slots__ = (
        "_children",
        "_cmdline",
        "_schedstat",
        "_slept_with",
        "_stat",
        "_syscall",
        "counter",
        "pid",
        "tid",
    )

    def __init__(self, pid: int, tid: int) -> None:
        base = f"/proc/{pid}/task/{tid}/"
        self.pid = pid
        self.tid = tid
        self.counter = b""
        # The counter with which the task was last seen asleep.
        self._slept_with = b""
        self._schedstat = ProcFile(base + "schedstat")
        self._children = ProcFile(base + "children")
        self._syscall = ProcFile(base + "syscall")
        self._cmdline = ProcFile(base + "cmdline")
        self._stat = ProcFile(base + "stat")

    @property
    def is_first(self) -> bool:
        """True for the first thread of a process, which is mostly its main thread."""
        return self.tid == self.pid

    def read_counter(self) -> bytes:
        """Return the run counter now, ``b""`` when the task is gone.

        Raises OSError when nothing is left to look with.
        """
        try:
            return self._schedstat.read(64)
        except OSError as error:
            raise_shortage(error)
            return b""

    def children(self) -> list[int]:
        """Return the pids this thread forked. Raises OSError when nothing is left to look with."""
        try:
            return [int(pid) for pid in self._children.read_list().split()]
        except OSError as error:
            raise_shortage(error)
            return []

    def syscall(self) -> bytes:
        """Return the system call that the task sleeps in, as the kernel prints it.

        Raises PermissionError when the task may not be inspected.
        """
        return self._syscall.read(256)

    def command_line(self) -> bytes:
        """Return the words of the command line, as they are now, each with a zero byte behind it.

        Raises OSError when the task is gone.
        """
        return self._cmdline.read()

    def status(self) -> TaskStatus:
        """Return name, state and terminal; OSError when the task is gone."""
        return parse_status(self._stat.read(512))

    def is_runnable(self) -> bool:
        """Return whether the task is on a processor, or about to be.

        Raises OSError when nothing is left to look with.
        """
        try:
            return self.status().state == RUNNABLE
        except OSError as error:
            raise_shortage(error)
            return False

    def has_slept(self) -> bool:
        """Return whether the task was seen asleep since it last ran.

        It may have been woken since: its counter changes once it runs. A task that is gone has
        slept. Raises OSError when nothing is left to look with.
        """
        # The counter was read before the state is. If the task has run in between, its counter is
        # another one at the next refresh.
        if self._slept_with == self.counter and self.counter:
            return True
        try:
            has_slept = self.status().is_asleep
        except OSError as error:
            raise_shortage(error)
            return True
        if has_slept:
            self._slept_with = self.counter
        return has_slept

    def close(self) -> None:
        """Close the files that are kept open."""
        for file in (self._schedstat, self._children, self._syscall, self._cmdline, self._stat):
            file.close()


def all_unmoved(tasks: Iterable[Task]) -> bool:
    """Return whether the counter of each task is the same as at the last refresh."""
    return all(task.read_counter() == task.counter for task in tasks)
