"""The route of one session: it passes messages between the session's holder and the server.

Theory of operation
-------------------

A *holder* is the process that owns a session's program. It outlives the daemon and keeps the
program's output until the server has committed it. The daemon has one :class:`SessionRoute` for
each session of the host. A route keeps no output and decides nothing about the program: it finds
the holder, forwards messages, and speaks for a holder that is dead.

A route has two states, which change independently: what is known of the holder (``_holder``), and
what the server wants (``_server``). ``route_states`` lists the values of both, the events that
change them, and the meaning of each pair. A route runs one task at a time, ``_task``: ``_search``,
``_report_end`` or ``_clean_up``. Three rules of order hold everywhere:

* Output is queued for the server inside the callback that read it. Nothing waits in between.
* A conversation with a holder lives no longer than the connection to the server that it serves, so
  no frame of an earlier connection can reach a later one.
* When a silent holder answers again, SESSION_FOUND goes to the server before any answer of the
  holder: meanwhile the server may have given an input's number to another input.
"""

import asyncio
import logging
from collections.abc import Callable

import msgspec

from controller_client.policy.input_guard import InputGuard
from controller_client.protocol.limits import SESSION_WINDOW_BYTES
from controller_client.protocol.messages import (
    CommandAck,
    DoneAck,
    Error,
    FromHolder,
    Gap,
    HolderAttach,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    PauseLifetime,
    SendInput,
    SessionFound,
    SessionSummary,
    Started,
    Stream,
    StreamOffset,
    TerminateCmd,
    new_id,
)
from controller_client.server_link.ack_ledger import AckCourier, end_of
from controller_client.server_link.errors import HolderUnreachable
from controller_client.server_link.holders.aftermath import Aftermath
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.server_link.holders.end_watch import EndWatch, is_end
from controller_client.server_link.holders.fork_server import Spawn
from controller_client.server_link.holders.outage import Outage
from controller_client.server_link.network.connection import Connection
from controller_client.server_link.refusals import ENDED, TOO_OLD, Command, refusal
from controller_client.server_link.route_states import (
    Attached,
    Detached,
    HolderState,
    Live,
    ServerState,
    Unreachable,
    Unwanted,
    look,
)
from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.one_shot import StartCommand

logger = logging.getLogger(__name__)

# HELLO waits for all looks, so a holder that does not answer (stopped, say) delays it no longer.
FIND_SECONDS = 1.5
# The delays between two looks. The first are short: a dying holder's socket closes before its lock.
SEARCH_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
# Shared by all sessions: a host that cannot open sockets logs that once, not once a session.
_OUTAGE = Outage(logger)


class SessionRoute:
    """A session's route. ``on_forgotten`` gets the session's id when nothing is left of it."""

    def __init__(
        self,
        directory: SessionDirectory,
        guard: InputGuard,
        aftermath: Aftermath,
        on_forgotten: Callable[[str], None],
    ) -> None:
        self.session_id = directory.session_id
        self.end_watch = EndWatch(aftermath)
        self._directory = directory
        self._guard = guard
        self._aftermath = aftermath
        self._on_forgotten = on_forgotten
        self._holder: HolderState = Unreachable()
        self._server: ServerState = Detached()
        # Commands that came while no holder answered, in order. They follow HOLDER_ATTACH.
        self._waiting: list[Command] = []
        self._task: asyncio.Task[None] | None = None
        self._acks = AckCourier(directory.session_id, self._pass_acks_on)
        # The holder's answer to START, to be repeated if START comes again.
        self._started: Started | None = None
        # The number of looks since a holder last answered. The pause before a look grows with it.
        self._looks = 0

    @property
    def is_connected(self) -> bool:
        """The server takes this session's messages on the present connection."""
        return isinstance(self._server, Attached)

    # ---- START

    async def begin(
        self, start: StartCommand, spawn: Spawn, connection: Connection | None, window: int
    ) -> int | None:
        """Have a new holder run ``start``, and attach. Returns its pid. Raises StartFailed."""
        attach = []
        if connection is not None:
            self._server = Attached(connection, window, is_found_awaited=False)
            attach = [self._attachment(window)]
        client = await spawn(start, attach, (self._on_holder, self._on_holder_closed))
        if client.is_open:  # of this daemon's own version, so it knows every message
            self._holder = Live(client, knows_lifetime=True)
        return client.pid

    def go_on(self, connection: Connection | None, window: int) -> None:
        """Serve ``connection``, which may be another one than when the START began, or none."""
        is_same = isinstance(self._server, Attached) and self._server.connection is connection
        if is_same and isinstance(self._holder, Live):
            self._take_waiting()
        elif connection is None:
            self.disconnect()
        else:
            if isinstance(self._holder, Live):
                self._holder.client.close()
                self._holder = Unreachable()
            self.connect(connection, {}, window)

    def repeat_start(self, command_seq: int) -> None:
        """Answer a START that came again as the first one was answered, under its own number."""
        if self._started is not None:
            again = msgspec.structs.replace(self._started, id=new_id(), command_seq=command_seq)
            self._answer(again)

    # ---- before WELCOME

    async def find(self) -> SessionSummary | None:
        """Look for the holder, alive or dead, and summarise the session for HELLO.

        None if its directory is gone. A session whose holder gives no answer in FIND_SECONDS counts
        as running, because the server takes every session that HELLO leaves out for lost.
        """
        self.disconnect()
        try:
            async with asyncio.timeout(FIND_SECONDS):
                summary = await self._look()
        except TimeoutError:
            summary = None
        except FileNotFoundError:
            return None
        return summary or SessionSummary(
            session_id=self.session_id, state="running", streams=[], input_seq=0
        )

    async def _look(self) -> SessionSummary | None:
        """Look for the holder once. FileNotFoundError: its directory is gone or spoiled."""
        try:
            self._holder, summary = await look(
                self._directory, self._on_holder, self._on_holder_closed, self.end_watch.holder
            )
        except FileNotFoundError:
            self.end_watch.vanished()
            raise
        except (HolderUnreachable, OSError) as error:
            _OUTAGE.report("a session cannot be looked for: %s", error)
            return None
        self.end_watch.heard(summary)
        return summary

    # ---- what the server wants

    def connect(
        self,
        connection: Connection,
        committed: dict[Stream, int],
        window_bytes: int,
        *,
        is_found_awaited: bool = False,
    ) -> None:
        """Serve ``connection``, from the offsets that the server has committed.

        ``is_found_awaited``: WELCOME said that the server waits for SESSION_FOUND of this session.
        """
        self._server = Attached(connection, window_bytes, is_found_awaited)
        self._acks.begin(committed)
        self._act()

    def forget(self) -> None:
        """End the session's program if it runs, and remove the session."""
        self._server = Unwanted()
        self.end_watch.on_command(TerminateCmd(seq=0, session_id=self.session_id))
        self._act()

    def settle(self) -> None:
        """Have the session removed, because the server has committed its end."""
        self._acks.stop()
        if isinstance(self._holder, Live):
            self._holder.client.send(DoneAck(session_ids=[self.session_id]))
            self._holder.is_settled = True
        elif isinstance(self._holder, DeadHolder):
            self._remove(self._holder)
        # A holder that is searched for reports its end again when it is found.

    def disconnect(self) -> None:
        """Leave the connection, which is gone. The holder keeps its program and its output."""
        self._server = Detached()
        self._acks.stop()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if isinstance(self._holder, Live):
            self._holder.client.close()
        elif isinstance(self._holder, DeadHolder):
            self._holder.release()
        self._holder = Unreachable()
        # The server sends every command again that was not answered.
        self._waiting.clear()

    def _act(self) -> None:
        """Do what the server wants with the holder, or search for the holder first."""
        if isinstance(self._holder, Unreachable):
            self._search_later()
        elif isinstance(self._server, Attached):
            self._serve(self._holder, self._server)
        elif isinstance(self._server, Unwanted):
            self._end(self._holder)

    def _serve(self, holder: Live | DeadHolder, server: Attached) -> None:
        """Enter Attached with a holder that was found; then take the commands that waited."""
        if isinstance(holder, DeadHolder):
            self._task = asyncio.get_running_loop().create_task(self._report_end(holder))
        else:
            holder.client.send(self._attachment(server.window_bytes))
        self._take_waiting()

    def _take_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for command in waiting:
            self.command(command)

    def _end(self, holder: Live | DeadHolder) -> None:
        """Enter Unwanted with a holder that was found."""
        if isinstance(holder, DeadHolder):
            self._task = asyncio.get_running_loop().create_task(self._clean_up(holder))
        else:
            # Without HOLDER_ATTACH the holder sends nothing, and would keep the end for ever.
            self._acks.begin({})
            holder.client.send(
                self._attachment(SESSION_WINDOW_BYTES),
                TerminateCmd(seq=0, session_id=self.session_id),
            )

    def _attachment(self, window_bytes: int) -> HolderAttach:
        offsets = self._acks.take_all()
        return HolderAttach(session_id=self.session_id, window_bytes=window_bytes, offsets=offsets)

    def _remove(self, holder: DeadHolder) -> None:
        holder.remove()
        self.end_watch.stop()
        self._holder = Unreachable()
        self._on_forgotten(self.session_id)

    # ---- messages of the server

    def command(self, command: Command) -> None:
        """Take a command: send it to the holder in its turn, or refuse it."""
        self.end_watch.on_command(command)
        holder = self._holder
        if isinstance(holder, Unreachable):
            self._waiting.append(command)
        elif isinstance(holder, DeadHolder):
            self._answer(refusal(command, ENDED))
        elif isinstance(command, PauseLifetime) and not holder.knows_lifetime:
            self._answer(refusal(command, TOO_OLD))
        else:
            if isinstance(command, SendInput):
                # An input that the policy refuses goes to the holder, too, with the refusal in it:
                # the holder answers it in its turn among the others.
                command = self._guard.judged(command, holder.client.capabilities)
            holder.client.send(*self._acks.take_pending(), command)

    def acknowledge(self, offsets: list[StreamOffset]) -> None:
        """Note output that the server has committed, so that the holder can free its memory."""
        if isinstance(self._holder, Live):
            # With a window of 0 bytes, each acknowledgement is passed on at once.
            window_bytes = self._server.window_bytes if isinstance(self._server, Attached) else 0
            self._acks.commit_soon(offsets, window_bytes)
        else:
            self._acks.commit(offsets)

    def _pass_acks_on(self) -> None:
        if isinstance(self._holder, Live):
            self._holder.client.send(*self._acks.take_pending())

    # ---- messages of the holder

    def _on_holder(self, message: FromHolder) -> None:
        self.end_watch.heard(message)
        if isinstance(self._server, Unwanted):
            self._acknowledge_unwanted(message)
        elif isinstance(message, InteractiveOutput | Gap | InteractiveCmdDone):
            if isinstance(message, InteractiveOutput):
                self._guard.on_report(message.terminal)
            if isinstance(self._server, Attached):
                self._server.connection.send_output(self.session_id, message)
        elif isinstance(message, Started):
            self._started = message
            self._looks = 0
            self._answer(message)
        elif isinstance(message, InputAck | CommandAck):
            self._answer(message)
        elif isinstance(message, Error):
            text = "the holder of session %s reports %s: %s"
            logger.error(text, self.session_id, message.code, message.message)

    def _answer(self, message: Started | InputAck | CommandAck) -> None:
        # Commands of the route itself have the number 0. The server knows nothing of them.
        if message.command_seq and isinstance(self._server, Attached):
            self._server.connection.send(message)

    def _acknowledge_unwanted(self, message: FromHolder) -> None:
        """Answer the holder as a server would that commits everything at once."""
        if is_end(message):
            self.settle()
        elif isinstance(message, InteractiveOutput | Gap):
            self.acknowledge([end_of(message)])

    def _on_holder_closed(self) -> None:
        if not isinstance(self._holder, Live):
            # It closed before ``look`` or ``begin`` could store it. Both look at ``is_open``.
            return
        is_settled = self._holder.is_settled
        self._holder = Unreachable()
        self._acks.stop()
        if is_settled:
            self._on_forgotten(self.session_id)
        elif not isinstance(self._server, Detached):
            logger.warning("the holder of session %s closed its socket", self.session_id)
            self._search_later()

    # ---- tasks

    def _search_later(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._search())

    async def _search(self) -> None:
        """Look for the holder until it is found, alive or dead, or its directory is gone."""
        summary = None
        while summary is None:
            await asyncio.sleep(SEARCH_SECONDS[min(self._looks, len(SEARCH_SECONDS) - 1)])
            self._looks += 1
            try:
                summary = await self._look()
            except FileNotFoundError:
                self._send_found(input_seq=0)
                lost = await self.end_watch.end_vanished()
                if lost is not None and isinstance(self._server, Attached):
                    self._server.connection.send_output(self.session_id, lost)
                self._on_forgotten(self.session_id)
                return
        if isinstance(self._server, Attached):
            self._send_found(summary.input_seq)
            # The holder sends its queued output again after HOLDER_ATTACH.
            self._server.connection.discard_queued(self.session_id)
        self._act()

    def _send_found(self, input_seq: int) -> None:
        """Tell a server that waits for it how many inputs the holder has taken."""
        if isinstance(self._server, Attached) and self._server.is_found_awaited:
            self._server.is_found_awaited = False
            found = SessionFound(session_id=self.session_id, input_seq=input_seq)
            self._server.connection.send(found)

    async def _report_end(self, dead: DeadHolder) -> None:
        """Report the end of a session whose holder is dead, once nothing of its program is left."""
        await self._aftermath.put_on_record(dead)
        if isinstance(self._server, Attached):
            for message in dead.closing_messages(self._acks.committed):
                self._server.connection.send_output(self.session_id, message)

    async def _clean_up(self, dead: DeadHolder) -> None:
        """Remove a session that nobody wants, once nothing of its program is left."""
        await self._aftermath.put_on_record(dead)
        self._remove(dead)
