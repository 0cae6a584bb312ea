"""The fork server: a small warm process that forks a holder for each session.

Forking needs a process without threads, and is fast from a small one. So the daemon does not fork:
holders are forked from here, and programs from their holders. Everything is imported once, and all
holders share that memory. A holder leads a session (of processes) of its own. It outlives both the
daemon and the fork server, which ends when the daemon's end of its socket closes.

The daemon has one spare holder in its hands, so that a start does not wait for a fork. The daemon
writes START to the socket of the spare, which the spare keeps as its first connection. A spare
whose daemon is gone ends. Processes that a killed holder leaves are re-parented to this process.

The daemon asks through a stream socket, which is the standard input:

==================== ================================================================
line                 answer
==================== ================================================================
``+``                ``+ <pid>`` with the socket of a new spare, or ``+ <errno name>``
``~``                the same, once there is nothing else to do; nothing if that fails,
                     or if there is a spare
<pid> <session_id>   none: the spare is the holder of this session now
?<session_id>        processes that a dead holder left: ``?<session_id> <all>
                     <pid>:<start> …``, where ``<all>`` is 1 if these are all, else 0;
                     or ``?<session_id> <errno name>`` if they cannot be looked at now
=<session_id> <p> …  the session's processes, and those below ``<p>`` (``<pid>:<start>``):
                     ``=<session_id> <pid>:<start> …``, or ``=<session_id> <errno name>``
!<session_id> <p> …  the same, after they were killed: those that are left
==================== ================================================================

Where programs run as another user, this process alone has the rights to become that user: they are
dropped by each fork once it acts as the user. The last two lines are for that case. A fork does
what they ask, since the daemon itself may neither look at such processes nor signal them.
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

from controller_client.holder.link import HolderLink
from controller_client.holder.process import hold
from controller_client.holder.rehearsal import rehearse, rehearse_one_shot
from controller_client.program.child_environment import account_of
from controller_client.program.child_setup import ignore_as_holder, inherited_ignores
from controller_client.session_files.directory import HolderRecord, directory_of
from controller_client.session_files.one_shot import as_start
from controller_client.system import prctl, resource_limits
from controller_client.system.adoption import LATER, Foster, Left
from controller_client.system.boot import boot_id
from controller_client.system.process_tree import named_process, session_members
from controller_client.system.termination import kill_leftovers
from controller_client.system.users.two_users import ProgramUser, act_as, keep_rights_to_itself

LOOK_AGAIN_SECONDS: Final = 0.2
"""Pause after a look at the children that failed."""
SPARE_AFTER_SECONDS: Final = 0.003
"""Pause between giving the spare holder to a session and forking the next spare.

A fork and a rehearsal take both cores of a small host from the program that a caller waits for. So
they follow once a short program is over, while the server stores its end.
"""
MAX_NAMED: Final = 512
"""Most processes in one answer about a dead holder."""
_RECEIVE_BYTES: Final = 64 * 1024
_TIMER_SLACK_NANOSECONDS: Final = 20_000


class ForkServer:
    """Makes a holder for each session that is asked for through ``requests``.

    ``groups``: where to make control groups, if anywhere. ``user``: whom programs run as, if not
    as the user of this process.
    """

    def __init__(
        self,
        state_dir: Path,
        requests: socket.socket,
        groups: Path | None = None,
        user: ProgramUser | None = None,
    ) -> None:
        self._state_dir = state_dir
        self._requests = requests
        self._groups = groups
        self._user = user
        self._foster = Foster()
        # Holders without a session, which the daemon has in its hands.
        self._spares: set[int] = set()
        self._is_spare_due = True
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
        # A daemon that dies with answers unread resets the socket.
        with suppress(ConnectionError):
            self._serve()
        self._end_spares()

    def _serve(self) -> None:
        pending = b""
        while True:
            # The next spare is forked when there is nothing else to do.
            patience = LOOK_AGAIN_SECONDS if self._is_look_due else None
            if self._is_spare_due:
                patience = SPARE_AFTER_SECONDS
            readable = select.select(
                [self._requests.fileno(), self._child_signals], (), (), patience
            )[0]
            if self._child_signals in readable:
                with suppress(BlockingIOError):
                    os.read(self._child_signals, 4096)
                self._is_look_due = True
            # Before the look: a holder that died already is to be known by its session.
            if self._requests.fileno() in readable:
                data = self._requests.recv(_RECEIVE_BYTES)
                if not data:
                    return
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    self._answer(line.decode("ascii", "replace"))
            elif not readable and self._is_spare_due:
                self._is_spare_due = False
                if not self._has_spare():
                    with suppress(OSError):
                        self._fork(is_awaited=False)
            if self._is_look_due:
                self._look()

    def _answer(self, asked: str) -> None:
        if asked == "+":
            try:
                self._fork(is_awaited=True)
            except OSError as error:
                self._requests.sendall(_answer(asked, error.errno or errno.EAGAIN))
        elif asked == "~":
            self._is_spare_due = True
        elif asked.startswith("?"):
            self._name_left(asked)
        elif asked.startswith(("=", "!")):
            self._send_deputy(asked)
        else:
            pid, _, session_id = asked.partition(" ")
            self._give(int(pid), session_id)

    def _name_left(self, asked: str) -> None:
        try:
            left = self._foster.left_by(asked[1:])
        except OSError as error:
            self._requests.sendall(_answer(asked, error.errno or errno.EAGAIN))
            return
        named = [process.mark for process in left.processes[:MAX_NAMED]]
        said = str(int(left.is_all)) if left.is_settled else LATER
        self._requests.sendall(" ".join([asked, said, *named, "\n"]).encode())

    def _send_deputy(self, asked: str) -> None:
        """Have a fork do as the programs' user what the daemon may not do itself."""
        question, *named = asked.split()
        try:
            pid = os.fork()
        except OSError as error:
            self._requests.sendall(_answer(question, error.errno or errno.EAGAIN))
            return
        if pid:
            self._foster.raised(pid, "")
            return
        try:
            signal.set_wakeup_fd(-1)
            _become_independent()
            if self._user is not None:
                act_as(self._user)
            found = " ".join(_swept(question[1:], named, is_killing=question[0] == "!"))
            self._requests.sendall(f"{question} {found}\n".encode())
        except OSError as error:
            self._requests.sendall(_answer(question, error.errno or errno.EAGAIN))
        finally:
            os._exit(0)

    def _give(self, spare: int, session_id: str) -> None:
        """Note the session of a spare, and continue a spare that a program has stopped."""
        if spare in self._spares:
            self._spares.remove(spare)
            self._foster.raised(spare, session_id)
            with suppress(ProcessLookupError):
                os.kill(spare, signal.SIGCONT)

    def _has_spare(self) -> bool:
        """Return whether a spare lives: one that a START got may not be known to be given yet."""
        self._spares = {pid for pid in self._spares if self._foster.has_raised(pid)}
        return bool(self._spares)

    def _end_spares(self) -> None:
        """Continue the spares, which end because their daemon is gone."""
        for spare in self._spares:
            with suppress(ProcessLookupError):
                os.kill(spare, signal.SIGCONT)

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

    def _fork(self, *, is_awaited: bool) -> None:
        """Fork a spare holder and send its socket to the daemon. Raises OSError.

        ``is_awaited``: a START waits for this holder, so it has no time to rehearse.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            if pid := os.fork():
                # Closed before the daemon has the other end, to which a dead spare is gone at once.
                theirs.close()
                self._foster.raised(pid, "")
                self._spares.add(pid)
                socket.send_fds(self._requests, [f"+ {pid}\n".encode()], [ours.fileno()])
                return
            try:
                ours.close()
                self._requests.close()
                self._foster.forget()
                signal.set_wakeup_fd(-1)
                os.close(self._child_signals)
                os.close(self._wakeup)
                _use_no_standard_streams()
                _become_independent()
                if not is_awaited:
                    rehearse_one_shot()
                _be_holder(self._state_dir, theirs, self._groups, self._user)
            finally:
                os._exit(1)


def _prepare_forks() -> None:
    """Prepare a process whose forks are to be holders: they inherit all of this.

    They survive when the daemon's own terminal hangs up.
    """
    ignore_as_holder()
    # Typed secrets are in the memory of a holder. Its program inherits that there is no core file.
    resource_limits.forbid_core_files()
    prctl.hide_memory()
    prctl.be_punctual(_TIMER_SLACK_NANOSECONDS)


def _become_independent() -> None:
    """Turn a fork into a holder, which adopts what its program leaves behind."""
    os.setsid()
    prctl.adopt_orphans()
    prctl.call_process(b"holdline-holder")


def _use_no_standard_streams() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)


def _be_holder(
    state_dir: Path, daemon: socket.socket, groups: Path | None, user: ProgramUser | None
) -> NoReturn:
    link = HolderLink(daemon)
    start = link.wait_for_start()
    if start is None:
        os._exit(0)
    admission = as_start(start).admission
    if admission is not None and admission.run_as and user is None:
        # The program would get this process's own user.
        link.refuse("EPERM", "this holder cannot become another user")
        os._exit(1)
    hold(directory_of(state_dir, start.session_id), start, link, groups, user)


def _swept(session_id: str, named: list[str], *, is_killing: bool) -> list[str]:
    """Kill or only list the processes of a session; return those that are there."""
    also = [process for name in named if (process := named_process(name)) is not None]
    if is_killing:
        kill_leftovers(session_id, lambda: Left(also, is_all=False))
    pids = [process.pid for process in also if named_process(process.mark) is not None]
    left = session_members(session_id, roots=(), terminal_session=None, also=pids)
    return [process.mark for process in left[:MAX_NAMED]]


def _answer(asked: str, failed: int) -> bytes:
    return f"{asked} {errno.errorcode.get(failed, 'EAGAIN')}\n".encode()


def main() -> None:
    """Run the fork server, with the socket as standard input.

    ``python -P -m controller_client.holder.fork_server <state-dir> [<control group> [<user>]]``,
    with an empty control group for none
    """
    groups, name = (*sys.argv[2:], "", "")[:2]
    user = ProgramUser.named(name) if name else None
    if user is not None:
        keep_rights_to_itself()
        account_of(user.uid)
    inherited_ignores()
    _prepare_forks()
    signal.signal(signal.SIGCHLD, _on_child_signal)
    prctl.adopt_orphans()
    boot_id()
    rehearse()
    # All holders share the memory of objects that exist now, so the garbage collector must not
    # write into it.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=os.dup(0)) as requests:
        ForkServer(Path(sys.argv[1]), requests, Path(groups) if groups else None, user).serve()


def _on_child_signal(_number: int, _frame: object) -> None:
    """Handle SIGCHLD, so that it is not ignored; the wake-up descriptor does the rest."""


if __name__ == "__main__":
    main()
