"""The check that the last input or resize has reached the program.

Without this check a reader would count as waiting that still sleeps from before the input. The
kernel counts how often each task has run. So the counters of all tasks are read before each event
that can wake a reader, and the event has reached a task whose counter has changed since.
"""

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from controller_client.terminal_state.kernel.proc_file import VANISHED
from controller_client.terminal_state.kernel.process_table import Counters, ProcessTable
from controller_client.terminal_state.kernel.task import Task

NOT_WOKEN_SECONDS: Final = 0.15
"""After this time without a task that ran, an input counts as one that wakes no task, such as an
ignored ctrl-c.
"""

# In canonical mode the end of input and the signals end the line as well. A line editor leaves its
# line on the terminal when it takes such a key: it may only ring the bell.
_ENDS_LINE: Final = re.compile(rb"[\r\n\x03\x04\x1a\x1c]")
_ENDS_EDITED_LINE: Final = re.compile(rb"[\r\n]")


def ends_line(data: bytes, *, is_raw: bool) -> bool:
    """Return whether input ends a line; ``is_raw``: on a terminal that is not canonical."""
    return (_ENDS_EDITED_LINE if is_raw else _ENDS_LINE).search(data) is not None


class InputReach:
    """The last event that can wake a reader, and the counters from right before it."""

    def __init__(self) -> None:
        self._at = -math.inf
        self._before: Counters | None = None
        # False while the counters could not be read: then only NOT_WOKEN_SECONDS help.
        self._is_known = True

    def before_event(self, now: float, table: ProcessTable, *, wakes_readers: bool) -> None:
        """To be called right before the event. One that wakes no reader needs no counters."""
        self._at = now
        self._before, self._is_known = None, False
        with suppress(*VANISHED):
            if wakes_readers:
                self._before = table.read_counters()
            self._is_known = True

    def has_reached(self, tasks: Iterable[Task], now: float) -> bool:
        """Return whether one of ``tasks`` has run since the event, or none of them has to."""
        if now - self._at >= NOT_WOKEN_SECONDS:
            return True
        before = self._before
        if before is None:
            return self._is_known
        return any(before.get(task.tid) != task.counter for task in tasks)
