"""The fork server: a small warm process that turns session directories into holders.

A program is forked from a holder, and a holder from here, because forking needs a process without threads and is fast from a small
one. Everything is imported once and shared by all holders. A holder leads a session of its own and outlives both the daemon and this
process, which waits for none of them (the kernel reaps them) and ends when the daemon's end of its socket closes.

On standard input, a stream socket: a line ``<session_id>`` asks for a holder; the answer is a line ``<session_id> ok`` once daemons can
connect to it, or ``<session_id> <errno name>``.
"""

import errno
import gc
import os
import signal
import socket
import sys
from pathlib import Path
from typing import NoReturn

from controller_client.child_environment import own_account
from controller_client.child_setup import inherited_ignores
from controller_client.holder import hold
from controller_client.platforms import this_platform
from controller_client.session_directory import directory_of

_RECEIVE_BYTES = 64 * 1024


def serve(state_dir: Path, requests: socket.socket, groups: Path | None = None) -> None:
    """Fork a holder for each session named, until the other end closes."""
    pending = b""
    while data := requests.recv(_RECEIVE_BYTES):
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            _spawn(state_dir, line.decode("ascii", "replace"), requests, groups)


def _spawn(state_dir: Path, session_id: str, replies: socket.socket, groups: Path | None) -> None:
    try:
        path = directory_of(state_dir, session_id).path
        _fork(path, session_id, replies, groups)
        failed = 0
    except ValueError:
        failed = errno.EINVAL
    except OSError as error:
        failed = error.errno or errno.EAGAIN
    if failed:
        replies.sendall(_answer(session_id, failed))


def _fork(path: Path, session_id: str, replies: socket.socket, groups: Path | None) -> None:
    """A holder with a session (of processes) of its own. Raises OSError."""
    if os.fork():
        return
    try:
        os.setsid()
        _be_holder(path, session_id, replies, groups)
    finally:
        os._exit(1)


def _be_holder(path: Path, session_id: str, replies: socket.socket, groups: Path | None) -> NoReturn:
    answer = os.dup(replies.fileno())
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)

    def report(failed: int) -> None:
        os.write(answer, _answer(session_id, failed))
        os.close(answer)

    hold(path, report, groups)


def _answer(session_id: str, failed: int) -> bytes:
    outcome = errno.errorcode.get(failed, "EAGAIN") if failed else "ok"
    return f"{session_id} {outcome}\n".encode()


def main() -> None:
    """Entry point: ``python -m controller_client.spawner <state-dir> [<control group>]`` with the socket as standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    # Nobody waits for a holder: the kernel reaps it, and it sets this again for its own children.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    inherited_ignores()
    own_account()
    this_platform()
    # What is alive now stays shared between all holders: the collector must not write into it.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as requests:
        serve(Path(sys.argv[1]), requests, Path(sys.argv[2]) if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()
