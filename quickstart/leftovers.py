"""Sessions that outlived the daemon. That is what holders are for, but not what Ctrl-C on a quickstart means."""

import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from controller_client.session_directory import SessionDirectory, all_sessions
from controller_client.termination import kill_leftovers

_LAST_WORDS_SECONDS = 3.0
_GONE_SECONDS = 5.0
_DARWIN_SOL_LOCAL = 0
_DARWIN_LOCAL_PEERPID = 2


def end_leftovers(state_dir: Path) -> None:
    """End the programs and holders of every session on this host. How they ended stays on disk for the next start to report."""
    for directory in all_sessions(state_dir):
        if directory.is_holder_alive():
            holder = _holder_pid(directory)
            kill_leftovers(directory.session_id)
            _wait(lambda directory=directory: directory.read_done() is not None, _LAST_WORDS_SECONDS)  # type: ignore[misc]
            if holder is not None:
                with suppress(ProcessLookupError):
                    os.kill(holder, signal.SIGKILL)
            _wait(lambda directory=directory: not directory.is_holder_alive(), _GONE_SECONDS)  # type: ignore[misc]


def _holder_pid(directory: SessionDirectory) -> int | None:
    """Who listens on the session's socket; None if nobody does."""
    try:
        with directory.connect() as connection:
            if sys.platform == "darwin":
                return int(struct.unpack("i", connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERPID, 4))[0])
            return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
    except OSError:
        return None


def _wait(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so() and time.monotonic() < deadline:
        select.select([], [], [], 0.02)
