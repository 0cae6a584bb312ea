"""One session as the daemon sees it: the conversation with its holder, or what a dead holder left.

Output passes through without waiting: a frame of the holder is queued for the server inside the callback that read it.
A conversation with a holder lives no longer than the connection to the server it serves, so no frame of an earlier
connection can reach a later one.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from controller_client.ack_ledger import AckLedger
from controller_client.connection import Connection
from controller_client.control_group import SessionGroup
from controller_client.errors import HolderUnreachable
from controller_client.holder_client import HolderClient
from controller_client.input_guard import InputGuard
from controller_client.protocol.limits import SESSION_WINDOW_BYTES
from controller_client.protocol.messages import (
    CommandAck,
    DoneAck,
    Error,
    Failure,
    FromHolder,
    Gap,
    HolderAttach,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Resize,
    SendInput,
    SessionSummary,
    Started,
    Stream,
    StreamOffset,
    TerminateCmd,
    new_id,
)
from controller_client.remains import Remains
from controller_client.session_directory import SessionDirectory
from controller_client.termination import kill_leftovers

logger = logging.getLogger(__name__)

Command = SendInput | TerminateCmd | Resize

# A holder that needs longer than this (a stopped one, say) must not keep all the others from being named in HELLO.
FIND_SECONDS = 1.5
# A dying holder's socket closes a moment before its lock is free: the waits between the looks for one or the other.
LOOK_AGAIN_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# A holder is woken for an acknowledgement only when it may need the room; else that waits for whatever wakes it next.
ACK_BYTES = 16 * 1024
ACK_SECONDS = 0.5
_ENDED = Failure(code="SESSION_ENDED", message="the program has ended")


class SessionRoute:
    """Routes one session's messages between the connection and its holder. ``on_forgotten`` is called when nothing is left of it."""

    def __init__(
        self, directory: SessionDirectory, guard: InputGuard, on_forgotten: Callable[[str], None], group: SessionGroup | None = None
    ) -> None:
        self.session_id = directory.session_id
        self._directory = directory
        self._guard = guard
        self._group = group
        self._on_forgotten = on_forgotten
        self._connection: Connection | None = None
        self._client: HolderClient | None = None
        self._remains: Remains | None = None
        self._started: Started | None = None
        self._acks = AckLedger(directory.session_id)
        self._ack_timer: asyncio.TimerHandle | None = None
        self._window_bytes = 0
        self._waiting: list[Command] = []
        self._task: asyncio.Task[None] | None = None
        self._looks = 0
        self._is_unwanted = False
        self._is_settled = False

    @property
    def is_connected(self) -> bool:
        """The server has been told about this session on the present connection."""
        return self._connection is not None

    # ---- between connections

    async def find(self) -> SessionSummary | None:
        """Look for the holder, or its remains, and open the conversation. None if the session is gone."""
        self.disconnect()
        try:
            async with asyncio.timeout(FIND_SECONDS):
                summary = await self._look()
        except TimeoutError:
            summary = None
        except FileNotFoundError:
            return None
        # Alive and silent: named, so that the server does not take it for lost, and sought again after WELCOME.
        return summary or SessionSummary(session_id=self.session_id, state="running", streams=[], input_seq=0)

    async def _look(self) -> SessionSummary | None:
        self._remains = Remains.claim(self._directory)
        if self._remains is not None:
            return self._remains.summary()
        try:
            return await self._open()
        except HolderUnreachable as error:
            logger.warning("%s", error)
            return None

    async def _open(self) -> SessionSummary:
        self._client, summary = await HolderClient.open(self._directory, self._on_holder, self._on_holder_closed)
        return summary

    def disconnect(self) -> None:
        """The connection is gone: the holder keeps its program and its output until the next one."""
        self._connection = None
        self._stop_ack_timer()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._remains is not None:
            self._remains.release()
            self._remains = None
        # The server sends every command again that was not settled.
        self._waiting.clear()

    # ---- a connection

    def connect(self, connection: Connection, committed: dict[Stream, int], window_bytes: int) -> None:
        """Go on from what the server has committed."""
        self._connection = connection
        self._acks.begin(committed)
        self._window_bytes = window_bytes
        if self._remains is None and (self._client is None or not self._client.is_open):
            self._recover_later()
        else:
            self._attach()

    async def begin(self) -> None:
        """Open the conversation with a holder that was just spawned. Raises HolderUnreachable."""
        await self._open()

    def abandon(self) -> bool:
        """No holder came up in time: remove the directory, so that none can come up later. False if there is one after all."""
        try:
            remains = Remains.claim(self._directory)
        except FileNotFoundError:
            return True
        if remains is not None:
            remains.remove()
        return remains is not None

    def forget(self) -> None:
        """The server wants nothing of this session: end its program if it runs, and remove it."""
        self._is_unwanted = True
        if self._remains is not None:
            self._remove_remains()
        elif self._client is not None and self._client.is_open:
            self._acks.begin({})
            self._send_attach(self._client, SESSION_WINDOW_BYTES)
            self._client.send(TerminateCmd(seq=0, session_id=self.session_id))
        else:
            self._recover_later()

    def _attach(self) -> None:
        if self._remains is not None:
            self._task = asyncio.get_running_loop().create_task(self._bury(self._remains))
        elif self._client is not None:
            self._send_attach(self._client, self._window_bytes)
        waiting, self._waiting = self._waiting, []
        for command in waiting:
            self.command(command)

    def _send_attach(self, client: HolderClient, window_bytes: int) -> None:
        self._stop_ack_timer()
        client.send(HolderAttach(session_id=self.session_id, window_bytes=window_bytes, offsets=self._acks.tell_all()))

    # ---- from the server

    def repeat_start(self, command_seq: int) -> None:
        """START came again: the session exists, so say what became of the first."""
        if self._started is not None and self._connection is not None:
            self._connection.send(_with_seq(self._started, command_seq))

    def command(self, command: Command) -> None:
        """Hand a command to the holder, in order; answer for a dead one."""
        if self._client is not None and self._client.is_open:
            # A refused input goes to the holder, too: it is settled there, in its place among the others.
            judged = self._guard.judged(command) if isinstance(command, SendInput) else command
            self._stop_ack_timer()
            self._client.send(*self._acks.tell_news(), judged)
        elif self._remains is not None:
            self._answer(refusal(command, _ENDED))
        else:
            self._waiting.append(command)

    def acknowledge(self, offsets: list[StreamOffset]) -> None:
        """The server committed output."""
        self._acks.commit(offsets)
        if self._client is None:
            return
        if self._acks.untold_bytes >= min(ACK_BYTES, self._window_bytes // 8):
            self._pass_acks_on()
        elif self._ack_timer is None:
            self._ack_timer = asyncio.get_running_loop().call_later(ACK_SECONDS, self._pass_acks_on)

    def _pass_acks_on(self) -> None:
        self._stop_ack_timer()
        if self._client is not None:
            self._client.send(*self._acks.tell_news())

    def _stop_ack_timer(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None

    def settle(self) -> None:
        """The server committed the end: the host forgets the session."""
        self._is_settled = True
        self._stop_ack_timer()
        if self._remains is not None:
            self._remove_remains()
        elif self._client is not None:
            self._client.send(DoneAck(session_ids=[self.session_id]))

    # ---- from the holder

    def _on_holder(self, message: FromHolder) -> None:
        if self._is_unwanted:
            self._swallow(message)
        elif isinstance(message, InteractiveOutput | Gap | InteractiveCmdDone):
            if isinstance(message, InteractiveOutput):
                self._guard.on_report(message.terminal)
            if self._connection is not None:
                self._connection.send_output(self.session_id, message)
        elif isinstance(message, Started):
            self._started = message
            self._looks = 0
            self._answer(message)
        elif isinstance(message, InputAck | CommandAck):
            self._answer(message)
        elif isinstance(message, Error):
            logger.error("the holder of session %s reports %s: %s", self.session_id, message.code, message.message)

    def _answer(self, message: Started | InputAck | CommandAck) -> None:
        # Commands of our own have no number, and the server does not wait for their answers.
        if message.command_seq and self._connection is not None:
            self._connection.send(message)

    def _swallow(self, message: FromHolder) -> None:
        """Stand in for a server that does not want the session any more."""
        if isinstance(message, InteractiveOutput):
            self._swallow_to(message.stream, message.offset + len(message.data))
        elif isinstance(message, Gap):
            self._swallow_to(message.stream, message.to_offset)
        elif isinstance(message, InteractiveCmdDone) or (isinstance(message, Started) and message.failure is not None):
            self.settle()

    def _swallow_to(self, stream: Stream, offset: int) -> None:
        self.acknowledge([StreamOffset(session_id=self.session_id, stream=stream, offset=offset)])

    def _on_holder_closed(self) -> None:
        self._client = None
        self._stop_ack_timer()
        if self._is_settled:
            self._on_forgotten(self.session_id)
        elif self._connection is not None:
            logger.warning("the holder of session %s closed its socket", self.session_id)
            self._recover_later()

    # ---- when a holder is gone or silent

    def _recover_later(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        """Find the holder again, or its remains, and go on from what is committed."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_SECONDS[min(self._looks, len(LOOK_AGAIN_SECONDS) - 1)])
            self._looks += 1
            try:
                found = await self._look()
            except FileNotFoundError:
                self._on_forgotten(self.session_id)
                return
            except OSError as error:
                logger.error("session %s cannot be looked for: %s", self.session_id, error)
                continue
            if found is None:
                continue
            if self._connection is not None:
                self._connection.drop_session(self.session_id)
            if self._is_unwanted:
                self.forget()
            else:
                self._attach()
            return

    async def _bury(self, remains: Remains) -> None:
        """Report the end of a session whose holder is dead; nothing of its program may stay behind."""
        if remains.done is None:
            logger.error("session %s is lost: its holder died", self.session_id)
            if self._group is not None:
                self._group.kill()
            survivors = await asyncio.to_thread(kill_leftovers, self.session_id)
            if self._group is not None:
                self._group.remove()
            try:
                remains.record_loss(survivors)
            except OSError as error:
                logger.error("the loss of session %s could not be recorded: %s", self.session_id, error)
        if self._connection is not None:
            for message in remains.last_words(dict(self._acks.committed)):
                self._connection.send_output(self.session_id, message)

    def _remove_remains(self) -> None:
        if self._remains is not None:
            self._remains.remove()
            self._remains = None
        self._on_forgotten(self.session_id)


def refusal(command: Command, failure: Failure) -> InputAck | CommandAck:
    """The answer to a command that no holder can be given."""
    if isinstance(command, SendInput):
        return InputAck(session_id=command.session_id, command_seq=command.seq, input_seq=command.input_seq, failure=failure)
    # There is nothing left to terminate, which is what TERMINATE_CMD wants.
    is_done = isinstance(command, TerminateCmd) and failure is _ENDED
    return CommandAck(session_id=command.session_id, command_seq=command.seq, failure=None if is_done else failure)


def _with_seq(started: Started, command_seq: int) -> Started:
    return msgspec.structs.replace(started, id=new_id(), command_seq=command_seq)
