"""Records now and then what a holder has: processes, memory, descriptors, the end of its lifetime.

* If the holder is killed, its daemon finds by the record the processes that its program hid.
* If the holder is stopped, a new daemon knows by the record when the session has to end.
* The memory of a holder is hidden from other processes, so the record is also how a daemon, or an
  operator, learns what holders cost.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.protocol.values import LifetimeReport
from controller_client.session_files.directory import HolderRecord, SessionDirectory
from controller_client.system.boot import boot_id, lifetime_clock
from controller_client.system.process_tree import own_descendants

FIRST_SECONDS: Final = 0.25
"""From the start to the first record; most commands are over by then, and cost nothing."""
EVERY_SECONDS: Final = 2.0
"""Between two records, at least; the holder has to be awake anyway."""
MAX_MEMBERS: Final = 512
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


class Census:
    """The record of the processes below this one. ``now`` is monotonic seconds."""

    def __init__(self, directory: SessionDirectory) -> None:
        self._directory = directory
        self._written: HolderRecord | None = None
        self._is_first = True
        self._next_at: float | None = None
        self._ends_at: float | None = None

    def begin(self, lifetime: LifetimeReport | None, now: float) -> None:
        """Begin to keep the record: the program runs."""
        self._ends_at = _latest_end(lifetime)
        self._next_at = now + FIRST_SECONDS

    def on_lifetime(self, lifetime: LifetimeReport | None) -> None:
        """Record the changed clock at once: the program may stop this process next."""
        if lifetime is not None:
            self._ends_at = _latest_end(lifetime)
            with suppress(OSError):
                self._take()

    def deadline(self) -> float | None:
        """Return when the first record is due; for the others nobody is woken."""
        return self._next_at if self._is_first else None

    def advance(self, now: float) -> None:
        """Write down what changed, if it is time."""
        if self._next_at is None or now < self._next_at:
            return
        self._next_at, self._is_first = now + EVERY_SECONDS, False
        # Without a free descriptor or room on the disk, the last record stays: that is no worse
        # than no record.
        with suppress(OSError):
            self._take()

    def _take(self) -> None:
        members = sorted((process.pid, process.started) for process in own_descendants(MAX_MEMBERS))
        if self._written is None or (members, self._ends_at) != (
            self._written.members,
            self._written.ends_at,
        ):
            memory_bytes = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
            descriptors = len(os.listdir("/proc/self/fd"))
            record = HolderRecord(
                boot_id=boot_id(),
                members=members,
                ends_at=self._ends_at,
                memory_bytes=memory_bytes,
                descriptors=descriptors,
            )
            self._directory.write_record(record)
            self._written = record


def _latest_end(lifetime: LifetimeReport | None) -> float | None:
    return None if lifetime is None else lifetime_clock() + lifetime.longest_seconds
