"""Find the holder of a session by its lock.

The kernel is asked, because any program of the user can write another number into the lock's file.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller_client.session_files.directory import LOCK_NAME, SessionDirectory
from controller_client.system.absence import is_gone
from controller_client.system.process_tree import DEAD_STATES, ProcessInfo, read_process

HOLDER_NAME: Final = "holdline-holder"
_LOCKS: Final = Path("/proc/locks")


def living_holder(directory: SessionDirectory) -> ProcessInfo | None:
    """Return the process that holds the session's lock; None if dead or not to be identified.

    Raises OSError if that cannot be found out now.
    """
    if not directory.is_holder_alive():
        return None
    pids, signed = set(_lockers(directory.path / LOCK_NAME)), directory.read_holder()
    pid = next(iter(pids), signed) if len(pids) < 2 else signed
    process = read_process(pid) if pid is not None and pid != os.getpid() else None
    if process is None or process.state in DEAD_STATES:
        return None
    # Some containers list no locks. There the file is believed, as long as it names a holder.
    return process if pid in pids or process.name == HOLDER_NAME else None


def _lockers(path: Path) -> Iterator[int]:
    """Yield the processes that hold a lock on this inode number, on any device."""
    try:
        inode, listed = str(path.stat().st_ino), _LOCKS.read_text().splitlines()
    except OSError as error:
        if is_gone(error) or isinstance(error, PermissionError):
            return
        raise
    for line in listed:
        # "<number>: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF".
        # A process that waits for the lock has "->" before FLOCK.
        # The device is not compared: for an overlay, stat and this list name different devices.
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            yield int(fields[4])
