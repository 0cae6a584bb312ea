"""The fork server: a small warm process that forks a holder for each session.

Forking needs a process without threads, and is fast from a small one. So the daemon does not fork:
holders are forked from here, and programs from their holders. Everything is imported once, and all
holders share that memory. A holder leads a session (of processes) of its own. It outlives both the
daemon and the fork server, which ends when the daemon's end of its socket closes.

One spare holder is kept ready, so that a start does not wait for a fork; it ends with this process.
Processes that a killed holder leaves are re-parented to this process.

The daemon asks through a stream socket, which is the standard input:

=============== =====================================================================
line            answer
=============== =====================================================================
<session_id>    ``<session_id> ok`` once daemons can connect to the new holder, or
                ``<session_id> <errno name>``
?<session_id>   processes that a dead holder left: ``?<session_id> <all> <pid>:<start> …``,
                where ``<all>`` is 1 if these are all, else 0; or
                ``?<session_id> <errno name>`` if they cannot be looked at now
=============== =====================================================================
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

import msgspec

from controller_client.holder.process import become_independent, hold, rehearse
from controller_client.program.child_environment import own_account
from controller_client.program.child_setup import inherited_ignores
from controller_client.program.platforms import this_platform
from controller_client.session_files.directory import HolderRecord, directory_of
from controller_client.system import prctl
from controller_client.system.adoption import Foster
from controller_client.system.boot import boot_id

LOOK_AGAIN_SECONDS: Final = 0.2
"""Pause after a look at the children that failed."""
SPARE_AFTER_SECONDS: Final = 0.01
"""Pause between giving the spare holder to a session and forking the next spare."""
MAX_NAMED: Final = 512
"""Most processes in one answer about a dead holder."""
_RECEIVE_BYTES: Final = 64 * 1024


class ForkServer:
    """Makes a holder for each session that is asked for through ``requests``.

    ``groups``: where to make control groups, if anywhere.
    """

    def __init__(
        self, state_dir: Path, requests: socket.socket, groups: Path | None = None
    ) -> None:
        self._state_dir = state_dir
        self._requests = requests
        self._groups = groups
        self._foster = Foster()
        self._spare: tuple[int, socket.socket] | None = None
        self._is_look_due = False
        self._child_signals, self._wakeup = os.pipe()
        for descriptor in (self._child_signals, self._wakeup):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        # SIGCHLD must not be ignored, or nobody could tell how a holder ended. A holder sets this
        # again for its own children.
        signal.signal(signal.SIGCHLD, _on_child_signal)

    def serve(self) -> None:
        """Serve until the other end of ``requests`` closes."""
        pending = b""
        while True:
            # The next spare is forked when there is nothing else to do, so that it takes no time
            # from the program that was just asked for.
            patience = LOOK_AGAIN_SECONDS if self._is_look_due else None
            if self._spare is None:
                patience = SPARE_AFTER_SECONDS
            readable = select.select(
                [self._requests.fileno(), self._child_signals], (), (), patience
            )[0]
            if self._child_signals in readable:
                with suppress(BlockingIOError):
                    os.read(self._child_signals, 4096)
                self._is_look_due = True
            if self._is_look_due:
                self._look()
            if self._requests.fileno() in readable:
                data = self._requests.recv(_RECEIVE_BYTES)
                if not data:
                    if self._spare is not None:
                        _hand_over(self._spare, b"")
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._answer(line.decode("ascii", "replace"))
            elif not readable and self._spare is None:
                with suppress(OSError):
                    self._spare = self._fork()

    def _answer(self, asked: str) -> None:
        if asked.startswith("?"):
            try:
                processes, is_all = self._foster.left_by(asked[1:])
            except OSError as error:
                self._requests.sendall(_answer(asked, error.errno or errno.EAGAIN))
                return
            named = [f"{process.pid}:{process.started}" for process in processes[:MAX_NAMED]]
            self._requests.sendall(" ".join([asked, str(int(is_all)), *named, "\n"]).encode())
        elif failed := self._spawn(asked):
            self._requests.sendall(_answer(asked, failed))

    def _look(self) -> None:
        try:
            lost = self._foster.look()
        except OSError:
            # No signal tells of these children again, so the look stays due.
            return
        self._is_look_due = False
        for session_id in lost:
            # For the next daemon, which has no fork server that saw the holder die.
            with suppress(OSError):
                self._write_down(session_id)

    def _write_down(self, session_id: str) -> None:
        directory = directory_of(self._state_dir, session_id)
        record = directory.read_record() or HolderRecord(boot_id=boot_id(), members=[])
        left = [
            (process.pid, process.started)
            for process in self._foster.left_by(session_id)[0][:MAX_NAMED]
        ]
        directory.write_record(
            msgspec.structs.replace(record, members=sorted({*record.members, *left}))
        )

    def _spawn(self, session_id: str) -> int:
        """Give the session to the spare holder, or to one that is forked now.

        Returns 0, or the errno of what went wrong.
        """
        spare, self._spare = self._spare, None
        try:
            path = bytes(directory_of(self._state_dir, session_id).path)
            if spare is None or not _hand_over(spare, path):
                spare = self._fork()
                _hand_over(spare, path)
            self._foster.raised(spare[0], session_id)
        except ValueError:
            return errno.EINVAL
        except OSError as error:
            return error.errno or errno.EAGAIN
        return 0

    def _fork(self) -> tuple[int, socket.socket]:
        """Fork a holder; return its pid and the socket at which it waits for its directory.

        Raises OSError.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                if pid := os.fork():
                    self._foster.raised(pid, "")
                    return pid, ours
            except OSError:
                ours.close()
                raise
            try:
                ours.close()
                self._foster.forget()
                signal.set_wakeup_fd(-1)
                os.close(self._child_signals)
                os.close(self._wakeup)
                os.setsid()
                _be_holder(theirs, self._requests, self._groups)
            finally:
                os._exit(1)


def _hand_over(holder: tuple[int, socket.socket], path: bytes) -> bool:
    """Send a holder the path of its session, or nothing to end it; False if it is gone.

    A program of the same user may have stopped a holder that waits, so the holder is continued.
    """
    pid, handed = holder
    with handed:
        try:
            handed.sendall(path)
            os.kill(pid, signal.SIGCONT)
        except OSError:
            return False
    return True


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
    """Run the fork server, with the socket as standard input.

    ``python -m controller_client.holder.fork_server <state-dir> [<control group>]``
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _on_child_signal)
    prctl.hide_memory()
    prctl.adopt_orphans()
    inherited_ignores()
    own_account()
    this_platform()
    boot_id()
    rehearse()
    # All holders share the memory of objects that exist now, so the garbage collector must not
    # write into it.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as requests:
        ForkServer(
            Path(sys.argv[1]), requests, Path(sys.argv[2]) if len(sys.argv) > 2 else None
        ).serve()


def _on_child_signal(_number: int, _frame: object) -> None:
    """Handle SIGCHLD, so that it is not ignored; the wake-up descriptor does the rest."""


if __name__ == "__main__":
    main()
