"""The holder: one process per session that owns its program and outlives daemons.

It has one thread on purpose, so that forking the program is safe, and it is small, because there is
one per session. It is nobody's child: daemons come and go and connect to its socket. It exists for
as long as there is something to tell about the session. Everything it does hangs on one ``select``:
unlike epoll, that waits for microseconds, and a first look at a program is due after so few.
"""

import errno
import os
import select
import signal
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from controller_client.holder.census import Census
from controller_client.holder.deadlines import earliest
from controller_client.holder.link import HolderLink, accept, listen
from controller_client.holder.session import InteractiveSession
from controller_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    Error,
    HolderAttach,
    HolderDetach,
    HolderHello,
    InputAck,
    PauseLifetime,
    Resize,
    SendInput,
    TerminateCmd,
    ToHolder,
)
from controller_client.protocol.values import PROVES_READERS
from controller_client.session_files.directory import (
    LOG_NAME,
    SOCKET_NAME,
    SessionDirectory,
    is_current_removed,
)
from controller_client.session_files.one_shot import StartCommand
from controller_client.system.files.plain_file import open_private
from controller_client.system.users.two_users import ProgramUser, act_as, as_owner

LOCK_SECONDS: Final = 1.0
"""A new holder waits so long for the lock, which a daemon that looks around takes for a moment."""
LINGER_SECONDS: Final = 7 * 24 * 3600.0
"""An ended session waits so long for a daemon; after that only ``done.json`` is left."""
LISTEN_AGAIN_SECONDS: Final = 0.2
"""Pause after a connection that could not be accepted for want of a descriptor."""
RECORD_AFTER_SECONDS: Final = 0.05
"""An end that nobody acknowledges is recorded on the disk after so long."""
RECORD_AGAIN_SECONDS: Final = 2.0
"""Pause after an end that could not be recorded, for want of room on the disk, say."""
ACK_WAIT_SECONDS: Final = 0.005
"""The news that an input was taken may wait so long for the program's answer."""
STARTED_WAIT_SECONDS: Final = 0.02
"""The news that a one-shot runs may wait so long for its output or its end."""
# The loop wakes at least this often, to look at timers that run on while the host is suspended.
_LONGEST_SLEEP_SECONDS: Final = 15.0


class Holder:
    """The loop around one session. ``directory`` is the current directory of the process.

    ``link`` leads to the daemon that asked for the session.
    """

    def __init__(
        self, directory: SessionDirectory, session: InteractiveSession, link: HolderLink
    ) -> None:
        self._directory = directory
        self._session = session
        self._listener = listen(SOCKET_NAME)
        self._child_signals, self._wakeup = os.pipe()
        os.set_blocking(self._child_signals, False)
        os.set_blocking(self._wakeup, False)
        signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _on_child_signal)
        self._link: HolderLink | None = link
        self._listen_again_at = 0.0
        self._is_attached = False
        self._is_done_due = False
        self._is_done_recorded = False
        self._record_not_before = 0.0
        self._ended_at: float | None = None
        self._is_finished = False
        self._census = Census(directory)

    def run(self) -> None:
        """Start the program and serve daemons until the session is forgotten."""
        # A daemon that was not greeted knows that nothing ran.
        self._greet(self._link)
        self._session.begin()
        if self._session.pid is not None:
            with suppress(OSError):  # a full disk does not end a program that runs
                self._directory.write_pid(self._session.pid)
            self._census.begin(self._session.started().lifetime, time.monotonic())
        while not self._is_finished:
            self._turn()
        self._drop_link()
        # Descriptors may be what the start failed for, and removing a directory takes one.
        self._listener.close()
        self._directory.remove()

    def _turn(self) -> None:
        """Wait until something happens or is due, and deal with it."""
        now = time.monotonic()
        if self._link is not None and self._link.is_closed:
            # The daemon was gone before it was greeted, say.
            self._drop_link()
        outputs = self._session.read_fds(now)
        wanted = self._wanted(outputs, now)
        readable, writable, _ = select.select(*wanted, (), self._timeout(now))
        now = time.monotonic()
        link = self._link
        if self._child_signals in readable:
            self._on_child_signals(now)
        # What the last daemon sent is read before its successor is let in.
        if link is not None and not link.is_closed and link.fileno() in readable:
            self._on_link_readable(link, now)
        if self._listener.fileno() in readable:
            self._on_connect(now)
        if not set(outputs).isdisjoint(readable):
            self._session.on_readable(now)
        if self._session.write_fd() in writable:
            self._send_acks(self._session.on_writable(now), now)
        self._advance(now)

    def _wanted(self, outputs: Iterable[int], now: float) -> tuple[list[int], list[int]]:
        reads = [self._child_signals, *outputs]
        if now >= self._listen_again_at:
            reads.append(self._listener.fileno())
        writes = []
        if self._link is not None:
            reads.append(self._link.fileno())
            if self._link.wants_write:
                writes.append(self._link.fileno())
        if (typing := self._session.write_fd()) is not None:
            writes.append(typing)
        return reads, writes

    def _timeout(self, now: float) -> float:
        link = self._link
        deadline = earliest(
            (
                self._session.deadline(now, has_room=link is None or link.has_room),
                link.held_until if link is not None else None,
                self._record_at,
                self._census.deadline(),
                self._listen_again_at if self._listen_again_at > now else None,
            )
        )
        return (
            _LONGEST_SLEEP_SECONDS
            if deadline is None
            else min(max(0.0, deadline - now), _LONGEST_SLEEP_SECONDS)
        )

    # ---- the daemon

    def _on_connect(self, now: float) -> None:
        try:
            link = accept(self._listener, has_begun=self._session.pid is not None)
        except OSError:
            # The daemon still waits at the socket, and select would report it without end.
            self._listen_again_at = now + LISTEN_AGAIN_SECONDS
            return
        if link is None:
            return
        self._drop_link()
        self._link = link
        self._greet(link)

    def _greet(self, link: HolderLink | None) -> None:
        if link is not None:
            link.send(HolderHello(summary=self._session.summary(), capabilities=[PROVES_READERS]))
            link.flush()

    def _on_link_readable(self, link: HolderLink, now: float) -> None:
        for message in link.receive():
            try:
                self._on_message(link, message, now)
            except (LocalProtocolError, RemoteProtocolError) as error:
                link.refuse(error.code, str(error))
        if link.is_closed:
            self._drop_link()

    def _on_message(self, link: HolderLink, message: ToHolder, now: float) -> None:
        session = self._session
        if isinstance(message, SendInput):
            self._send_acks(session.on_input(message, now), now)
        elif isinstance(message, Ack):
            for position in message.offsets:
                if position.session_id == session.session_id:
                    session.pump.acknowledge(position.stream, position.offset, now)
        elif isinstance(message, HolderAttach):
            self._on_attach(link, message, now)
        elif isinstance(message, HolderDetach):
            self._detach()
        elif isinstance(message, TerminateCmd):
            link.send(session.on_terminate(message, now))
        elif isinstance(message, Resize):
            link.send(session.on_resize(message, now))
        elif isinstance(message, PauseLifetime):
            ack = session.on_pause_lifetime(message)
            link.send(ack)
            self._census.on_lifetime(ack.lifetime)
        elif isinstance(message, DoneAck):
            self._is_finished = session.has_ended and session.session_id in message.session_ids
        elif isinstance(message, Error):
            link.close()

    def _on_attach(self, link: HolderLink, message: HolderAttach, now: float) -> None:
        offsets = {position.stream: position.offset for position in message.offsets}
        self._session.pump.attach(offsets, message.window_bytes, now)
        self._is_attached = True
        self._is_done_due = self._session.done is not None
        started = self._session.started()
        if self._session.is_one_shot and started.failure is None:
            # Nobody waits for the beginning of a one-shot, and its end is seldom far.
            link.send_in_company(started, now + STARTED_WAIT_SECONDS)
        else:
            link.send(started)
        # The answers have to come before the end: an input whose answer was lost would else count
        # as one that came too late.
        for ack in self._session.last_acks():
            link.send(ack)

    def _detach(self) -> None:
        self._is_attached = False
        self._session.pump.detach()

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._detach()

    def _send_acks(self, acks: Sequence[InputAck], now: float) -> None:
        """Send acknowledgements; one without a failure may wait a moment for the program's output.

        Then the daemon wakes up for one frame, not for two.
        """
        if self._link is not None:
            for ack in acks:
                if ack.failure is None:
                    self._link.send_in_company(ack, now + ACK_WAIT_SECONDS)
                else:
                    self._link.send(ack)

    # ---- the program

    def _on_child_signals(self, now: float) -> None:
        with suppress(BlockingIOError):
            os.read(self._child_signals, 4096)
        self._session.on_child_change(now)

    def _advance(self, now: float) -> None:
        self._send_acks(self._session.advance(now), now)
        if self._session.has_ended and self._ended_at is None:
            self._ended_at = now
            self._is_done_due = self._is_attached and self._session.done is not None
        self._send_output(now)
        self._record_end(now)
        self._census.advance(now)
        if self._ended_at is not None and (
            now > self._ended_at + LINGER_SECONDS or is_current_removed()
        ):
            # Not through ``run``, which would remove the directory with ``done.json``.
            os._exit(0)

    def _send_output(self, now: float) -> None:
        link = self._link
        if link is None:
            return
        for frame in self._session.pump.frames(now):
            link.send(frame)
            if not link.has_room:
                link.flush()
                if not link.has_room:
                    break
        done = self._session.done
        if self._is_done_due and done is not None and self._session.pump.sender.is_drained:
            self._is_done_due = False
            link.send(done)
        link.flush(now)
        if link.is_closed:
            self._drop_link()

    @property
    def _record_at(self) -> float | None:
        """The moment to record the end on the disk; None if there is nothing to record.

        It is not recorded at once, because the server usually acknowledges the end before a disk
        has written it.
        """
        if self._session.done is None or self._is_done_recorded or self._ended_at is None:
            return None
        return max(self._ended_at + RECORD_AFTER_SECONDS, self._record_not_before)

    def _record_end(self, now: float) -> None:
        """Record the end once that is due, in case this process dies, too."""
        done, record_at = self._session.done, self._record_at
        if done is not None and record_at is not None and now >= record_at:
            try:
                self._directory.write_done(done)
                self._is_done_recorded = True
            except OSError:
                self._record_not_before = now + RECORD_AGAIN_SECONDS


def hold(
    directory: SessionDirectory,
    start: StartCommand,
    link: HolderLink,
    groups: Path | None = None,
    user: ProgramUser | None = None,
) -> NoReturn:
    """Be the holder of the session until the session is forgotten.

    ``groups`` is where control groups of sessions are made, if anywhere. ``user``: the program
    runs as that user, not as the one of this process. ``link`` leads to the
    daemon that sent START. HOLDER_HELLO greets the daemon before the program starts, or ERROR names
    the errno of the reason why there will be no holder. The process must be a fresh fork with
    nothing to lose, and independent: this changes its directory and signals.
    """
    status = 1
    try:
        holder = _settle_in(directory, start, link, groups, user)
        if holder is not None:
            holder.run()
            status = 0
    except BaseException:  # noqa: BLE001 (nobody is there to see it, so it is written down)
        with suppress(OSError), as_owner(), open(LOG_NAME, "a", opener=open_private) as log:
            traceback.print_exc(file=log)
    finally:
        os._exit(status)


def _settle_in(
    directory: SessionDirectory,
    start: StartCommand,
    link: HolderLink,
    groups: Path | None,
    user: ProgramUser | None,
) -> Holder | None:
    """Do everything up to the program's start; None if the failure of that was reported."""
    lock = None
    try:
        os.chdir(directory.path)
        lock = _lock_patiently(directory)
        if lock is not None and directory.read_done() is None:
            directory.sign(lock)
            holder = Holder(directory, InteractiveSession(start, groups, directory), link)
            # Only now: whoever connects is told the user that this process had when it listened.
            if user is not None:
                act_as(user)
            return holder
        failed = errno.EEXIST
    except OSError as error:
        failed = error.errno or errno.EIO
    if lock is not None:
        # The daemon takes the lock, once it is told, as the proof that there is no holder.
        os.close(lock)
    link.refuse(errno.errorcode.get(failed, "EIO"), os.strerror(failed))
    return None


def _lock_patiently(directory: SessionDirectory) -> int | None:
    deadline = time.monotonic() + LOCK_SECONDS
    while (
        (lock := directory.lock()) is None
        and time.monotonic() < deadline
        and directory.path.is_dir()
    ):
        select.select((), (), (), 0.02)
    return lock


def _on_child_signal(_number: int, _frame: object) -> None:
    """Handle SIGCHLD, so that it is not ignored; the wake-up descriptor does the rest."""
