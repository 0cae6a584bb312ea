"""The fork server: a small warm process that turns session directories into holders.

A program is forked from a holder, and a holder from here, because forking needs a process without threads and is fast from a small
one. Everything is imported once and shared by all holders. A holder leads a session of its own and outlives both the daemon and this
process, which waits for none of them (the kernel reaps them) and ends when the daemon's end of its socket closes. One more holder
than there are sessions is kept ready, so that a start does not wait for a fork; it ends with this process.

On standard input, a stream socket: a line ``<session_id>`` asks for a holder; the answer is a line ``<session_id> ok`` once daemons can
connect to it, or ``<session_id> <errno name>``.
"""

import errno
import gc
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from controller_client.child_environment import own_account
from controller_client.child_setup import inherited_ignores
from controller_client.holder import become_independent, hold, rehearse
from controller_client.platforms import this_platform
from controller_client.session_directory import directory_of

SPARE_AFTER_SECONDS: Final = 0.01
"""After a session was given its holder, this long passes before the next one's is made ready."""
_RECEIVE_BYTES: Final = 64 * 1024


def serve(state_dir: Path, requests: socket.socket, groups: Path | None = None) -> None:
    """Have a holder for each session named, until the other end closes."""
    pending = b""
    spare: socket.socket | None = None
    while True:
        # The next spare is made when there is nothing else to do: what it takes is not taken from the program that was just asked for.
        if spare is None and not select.select([requests], (), (), SPARE_AFTER_SECONDS)[0]:
            with suppress(OSError):
                spare = _fork(requests, groups)
        data = requests.recv(_RECEIVE_BYTES)
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            _spawn(state_dir, line.decode("ascii", "replace"), spare, requests, groups)
            spare = None


def _spawn(state_dir: Path, session_id: str, spare: socket.socket | None, replies: socket.socket, groups: Path | None) -> None:
    """Give the session to ``spare``, which is used up, or to a holder made for it."""
    try:
        path = bytes(directory_of(state_dir, session_id).path)
        if spare is None or not _hand_over(spare, path):
            _hand_over(_fork(replies, groups), path)
        failed = 0
    except ValueError:
        failed = errno.EINVAL
    except OSError as error:
        failed = error.errno or errno.EAGAIN
    if failed:
        replies.sendall(_answer(session_id, failed))


def _hand_over(spare: socket.socket, path: bytes) -> bool:
    """False if there is nobody there any more."""
    with spare:
        try:
            spare.sendall(path)
        except OSError:
            return False
    return True


def _fork(replies: socket.socket, groups: Path | None) -> socket.socket:
    """A holder with a session (of processes) of its own, which waits at the other end for its directory. Raises OSError."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            if os.fork():
                return ours
        except OSError:
            ours.close()
            raise
        try:
            ours.close()
            os.setsid()
            _be_holder(theirs, replies, groups)
        finally:
            os._exit(1)


def _be_holder(handed: socket.socket, replies: socket.socket, groups: Path | None) -> NoReturn:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    become_independent()
    rehearse()
    path = b""
    while part := handed.recv(_RECEIVE_BYTES):
        path += part
    handed.close()
    if not path:
        os._exit(0)
    directory = Path(os.fsdecode(path))

    def report(failed: int) -> None:
        replies.sendall(_answer(directory.name, failed))
        replies.close()

    hold(directory, report, groups)


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
    rehearse()
    # What is alive now stays shared between all holders: the collector must not write into it.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as requests:
        serve(Path(sys.argv[1]), requests, Path(sys.argv[2]) if len(sys.argv) > 2 else None)


if __name__ == "__main__":
    main()
