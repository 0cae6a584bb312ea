"""The end of sessions that outlive the daemon.

Holders exist to let sessions outlive the daemon, but Ctrl-C on a quickstart means to end them too.
"""

import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

from controller_client.session_files.directory import SessionDirectory, all_sessions
from controller_client.system.process_tree import DEAD_STATES, read_process
from controller_client.system.termination import kill_leftovers
from quickstart.previous import wait_until

_LAST_WORDS_SECONDS = 3.0
_GONE_SECONDS = 5.0
_DARWIN_SOL_LOCAL = 0
_DARWIN_LOCAL_PEERPID = 2


def end_leftovers(state_dir: Path) -> None:
    """End the programs and holders of all sessions in ``state_dir``.

    The end of each session stays on disk, and the next start reports it.
    """
    for directory in all_sessions(state_dir):
        if directory.is_holder_alive():
            _end_session(directory)


def _end_session(directory: SessionDirectory) -> None:
    holder = _holder_pid(directory)
    kill_leftovers(directory.session_id)
    wait_until(lambda: directory.read_done() is not None, _LAST_WORDS_SECONDS)
    if holder is not None:
        with suppress(ProcessLookupError):
            os.kill(holder, signal.SIGKILL)
    wait_until(lambda: not directory.is_holder_alive(), _GONE_SECONDS)


def wait_until_reported(state_dir: Path) -> None:
    """Wait up to 3 s until the server has confirmed all ended sessions, so that holders end."""

    def is_reported() -> bool:
        return not any(one.is_holder_alive() and _has_ended(one) for one in all_sessions(state_dir))

    wait_until(is_reported, _LAST_WORDS_SECONDS)


def _has_ended(directory: SessionDirectory) -> bool:
    """Tell whether the program has ended, also while its holder has not recorded the end yet.

    A holder records an end only if the server does not confirm the end within a moment.
    """
    leader = directory.read_pid()
    if directory.read_done() is not None or leader is None:
        return True
    program = read_process(leader)
    return program is None or program.state in DEAD_STATES


def _holder_pid(directory: SessionDirectory) -> int | None:
    """The process id of the listener on the session's socket; None if there is none."""
    try:
        with directory.connect() as connection:
            if sys.platform == "darwin":
                return int(
                    struct.unpack(
                        "i", connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERPID, 4)
                    )[0]
                )
            return int(
                struct.unpack(
                    "3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
                )[0]
            )
    except OSError:
        return None
