"""Find the holder of a session by its lock, or above the session's processes.

The kernel is asked, because any program of the user can write another number into the lock's file.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller_client.session_files.directory import LOCK_NAME, SessionDirectory
from controller_client.system.absence import is_gone, raise_unknown
from controller_client.system.boot import boot_id
from controller_client.system.process_tree import (
    DEAD_STATES,
    ProcessInfo,
    read_process,
    session_members,
)

HOLDER_NAME: Final = "holdline-holder"
_LOCKS: Final = Path("/proc/locks")


def living_holder(directory: SessionDirectory) -> ProcessInfo | None:
    """Return the session's holder; None if it is dead or not to be identified.

    A program can spoil the lock of its holder, put another in its place, or take it. Then the
    session's processes lead to the holder. Raises OSError if that cannot be found out now.
    """
    owner = locker(directory)
    if owner is not None and owner.name == HOLDER_NAME:
        return owner
    return _holder_above(directory)


def locker(directory: SessionDirectory) -> ProcessInfo | None:
    """Return the other process that has the session's lock, whatever it is. Raises OSError.

    None if there is none, or if it cannot be identified.
    """
    try:
        if not directory.is_holder_alive():
            return None
    except OSError as error:
        raise_unknown(error)
    pids, signed = set(_lockers(directory.path / LOCK_NAME)), directory.read_holder()
    pid = next(iter(pids), signed) if len(pids) < 2 else signed
    process = read_process(pid) if pid is not None and pid != os.getpid() else None
    if process is None or process.state in DEAD_STATES:
        return None
    # Some containers list no locks. There the file is believed, as long as it names a holder.
    return process if pid in pids or process.name == HOLDER_NAME else None


def _holder_above(directory: SessionDirectory) -> ProcessInfo | None:
    """Return the uppermost process with the name of holders above the session's processes.

    A program can take that name, but it stays below its holder. Raises OSError.
    """
    if not sys.platform.startswith("linux"):  # no process can be given a name there
        return None
    # A daemon may itself be a program of a session, whose holder is not to be taken for this one.
    ours = {process.pid for process in _line_of(os.getpid())}
    known = [process.pid for process in recorded_processes(directory)]
    members = session_members(directory.session_id, roots=(), terminal_session=None, also=known)
    for member in members:
        holders = [
            process
            for process in _line_of(member.pid)
            if process.name == HOLDER_NAME and process.pid not in ours
        ]
        if holders:
            return holders[-1]
    return None


def _line_of(pid: int) -> Iterator[ProcessInfo]:
    """Yield a process, its parent, and so on."""
    while pid and (process := read_process(pid)) is not None and process.state not in DEAD_STATES:
        yield process
        pid = process.parent_pid


def recorded_processes(directory: SessionDirectory) -> list[ProcessInfo]:
    """Return the processes that the holder saw last and that still run. Raises OSError.

    None after a reboot: then the numbers and start times on record are those of other processes.
    """
    record = directory.read_record()
    if record is None or record.boot_id != boot_id():
        return []
    current = ((started, read_process(pid)) for pid, started in record.members)
    return [
        process
        for started, process in current
        if process is not None and process.started == started
    ]


def _lockers(path: Path) -> Iterator[int]:
    """Yield the processes that hold a lock on this inode number, on any device."""
    try:
        inode, listed = str(path.lstat().st_ino), _LOCKS.read_text().splitlines()
    except OSError as error:
        if not is_gone(error):
            raise_unknown(error)
        return
    for line in listed:
        # "<number>: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF".
        # A process that waits for the lock has "->" before FLOCK.
        # The device is not compared: for an overlay, stat and this list name different devices.
        fields = line.split()
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode:
            yield int(fields[4])
