"""The file in which the daemon says how it is doing: ``<state-dir>/status.json``.

It is written when the state of the connection changes, and read by whoever asks on the host itself.
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from controller_client.session_files.directory import Pid
from controller_client.system.files.plain_file import (
    NotPlainFile,
    create_plain,
    decoded,
    open_private,
    read_plain,
)

NAME: Final = "status.json"
LOCK_NAME: Final = "daemon.lock"
State = Literal["connecting", "connected", "refused", "unreachable"]
# No calendar ends before the year 9999.
_Moment = Annotated[float, msgspec.Meta(ge=0, lt=253_370_764_800)]


class DaemonStatus(msgspec.Struct, kw_only=True, frozen=True):
    """The state of the connection since ``since`` (seconds of the wall clock), and why."""

    state: State
    since: _Moment
    why: str
    pid: Pid
    started: _Moment
    version: str
    server: str


_STATUS: msgspec.json.Decoder[DaemonStatus] = msgspec.json.Decoder(DaemonStatus)


class StatusFile:
    """The daemon's own status file. A disk that is full does not end the daemon."""

    def __init__(self, state_dir: Path, *, version: str, server: str) -> None:
        self._path = state_dir / NAME
        self._status = DaemonStatus(
            state="connecting",
            since=time.time(),
            why="",
            pid=os.getpid(),
            started=time.time(),
            version=version,
            server=server,
        )
        self._write()

    def tell(self, state: State, why: str = "") -> None:
        """Write the new state, unless it is the old one."""
        before = self._status
        if (state, why) == (before.state, before.why):
            return
        since = before.since if state == before.state else time.time()
        self._status = msgspec.structs.replace(before, state=state, why=why, since=since)
        self._write()

    def remove(self) -> None:
        """Remove the file: the daemon ends, and nobody is to take it for its successor."""
        with suppress(OSError):
            self._path.unlink()

    def _write(self) -> None:
        draft = self._path.with_suffix(".new")
        with suppress(OSError):
            with os.fdopen(create_plain(draft), "wb") as file:
                file.write(msgspec.json.encode(self._status))
            draft.replace(self._path)


def read_status(state_dir: Path) -> DaemonStatus | None:
    """Return what the running daemon last wrote; None if no daemon runs, or it wrote nothing.

    Raises OSError if that cannot be found out.
    """
    if not is_daemon_running(state_dir):
        return None
    try:
        status = decoded(read_plain(state_dir / NAME), _STATUS.decode)
    except (FileNotFoundError, NotPlainFile):
        return None
    # A daemon that has just started has not replaced what its predecessor wrote.
    return status if status is not None and _exists(status.pid) else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def is_daemon_running(state_dir: Path) -> bool:
    """Tell whether a daemon has locked the state directory. Raises OSError."""
    try:
        descriptor = open_private(state_dir / LOCK_NAME, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
