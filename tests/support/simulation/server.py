"""The simulated server: a database that survives crashes, and connections that do not."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from controller_client.protocol.codec import decode_from_controller
from controller_client.protocol.limits import HEARTBEAT_SECONDS, LEASE_SECONDS
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    FromController,
    Gap,
    Hello,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    SendInput,
    SessionDirective,
    Started,
    StartInteractiveCmd,
    Stream,
    StreamOffset,
    Welcome,
)
from controller_client.protocol.resume import ReceiveWindow, StreamReceiver
from controller_client.protocol.session_state import SessionState, check_transition
from tests.support.simulation.link import Link
from tests.support.simulation.plan import SessionPlan, WorldPlan
from tests.support.simulation.scheduler import Scheduler

_COMMIT_SECONDS: Final = 0.02
_HEARTBEAT_SECONDS: Final = 0.3


@dataclass
class StoredSession:
    """The rows of one session.

    ``pieces`` are committed ranges in the order of their commits; data of None stands for a gap.
    """

    plan: SessionPlan
    state: SessionState = SessionState.PENDING
    receivers: dict[Stream, StreamReceiver] = field(default_factory=dict)
    pieces: list[tuple[Stream, int, bytes | None]] = field(default_factory=list)
    last_output_seq: int = 0
    inputs_created: int = 0
    inputs_settled: dict[int, InputAck] = field(default_factory=dict)
    done: InteractiveCmdDone | None = None

    def become(self, state: SessionState) -> None:
        check_transition(self.state, state)
        self.state = state

    def offsets(self) -> list[StreamOffset]:
        return [
            StreamOffset(session_id=self.plan.session_id, stream=stream, offset=receiver.expected)
            for stream, receiver in self.receivers.items()
        ]


@dataclass
class Database:
    """The part of the server that survives its crashes.

    ``outbox`` holds unsettled commands by their seq.
    """

    sessions: dict[str, StoredSession]
    outbox: dict[int, StartInteractiveCmd | SendInput] = field(default_factory=dict)
    last_command_seq: int = 0
    epoch: int = 0


class ServerConnection:
    """One accepted connection; its queue of uncommitted messages dies with it."""

    def __init__(self, to_daemon: Link, on_close: Callable[[], None], plan: WorldPlan) -> None:
        self.to_daemon = to_daemon
        self.on_close = on_close
        self.epoch: int | None = None
        self.queue: list[FromController] = []
        self.window = ReceiveWindow(
            session_window_bytes=plan.session_window_bytes,
            connection_window_bytes=plan.connection_window_bytes,
        )
        # The real window tolerates one chunk more. Here the limit is exact.
        self.in_session: Counter[str] = Counter()
        self.duplicated_bytes = 0


class SimulatedServer:
    """One life of a server process over a database."""

    def __init__(self, scheduler: Scheduler, plan: WorldPlan, database: Database) -> None:
        self._scheduler = scheduler
        self._plan = plan
        self.database = database
        self._connections: list[ServerConnection] = []
        self._is_alive = True

    def accept(self, to_daemon: Link, on_close: Callable[[], None]) -> ServerConnection:
        connection = ServerConnection(to_daemon, on_close, self._plan)
        self._connections.append(connection)
        return connection

    def crash(self) -> None:
        self._is_alive = False

    def create_command(self, command: StartInteractiveCmd | SendInput) -> None:
        """Store a command, and send it on every connection that may carry it."""
        self.database.outbox[command.seq] = command
        for connection in self._connections:
            if connection.epoch == self.database.epoch:
                self._send_command(connection, command)

    def receive(self, connection: ServerConnection, frame: bytes) -> None:
        if not self._is_alive:
            return
        message = decode_from_controller.decode(frame)
        if isinstance(message, Hello):
            self._on_hello(connection, message)
            return
        self._queue(connection, message)
        if self._scheduler.random.random() < self._plan.duplicate_probability:
            connection.duplicated_bytes += _size_bytes(message)
            self._queue(connection, message)
        self._scheduler.soon(_COMMIT_SECONDS, lambda: self._commit(connection))

    def _queue(self, connection: ServerConnection, message: FromController) -> None:
        connection.queue.append(message)
        if isinstance(message, InteractiveOutput):
            connection.window.received(message.session_id, len(message.data))
            allowed = self._plan.connection_window_bytes + connection.duplicated_bytes
            assert connection.window.in_flight_bytes <= allowed, (
                "the connection's window was exceeded"
            )
            connection.in_session[message.session_id] += len(message.data)
            allowed = self._plan.session_window_bytes + connection.duplicated_bytes
            assert connection.in_session[message.session_id] <= allowed, (
                "a session's window was exceeded"
            )

    def _on_hello(self, connection: ServerConnection, hello: Hello) -> None:
        self.database.epoch += 1
        connection.epoch = self.database.epoch
        self._scheduler.soon(_HEARTBEAT_SECONDS, self._close_fenced)
        directives = [self._directive(summary.session_id) for summary in hello.sessions]
        self._assert_none_vanished({summary.session_id for summary in hello.sessions})
        connection.to_daemon.send(
            Welcome(
                heartbeat_seconds=HEARTBEAT_SECONDS,
                lease_seconds=LEASE_SECONDS,
                session_window_bytes=self._plan.session_window_bytes,
                connection_window_bytes=self._plan.connection_window_bytes,
                sessions=directives,
            )
        )
        for _, command in sorted(self.database.outbox.items()):
            self._send_command(connection, command)

    def _close_fenced(self) -> None:
        """Close connections that have lost the controller, as a heartbeat does.

        A connection can be overtaken by the late HELLO of its predecessor.
        """
        if not self._is_alive:
            return
        for connection in self._connections:
            if connection.epoch is not None and connection.epoch != self.database.epoch:
                connection.on_close()

    def _directive(self, session_id: str) -> SessionDirective:
        session = self.database.sessions[session_id]
        if session.state.is_final:
            return SessionDirective(session_id=session_id, action="forget")
        return SessionDirective(
            session_id=session_id, action="continue", expected=session.offsets()
        )

    def _assert_none_vanished(self, named: set[str]) -> None:
        running = {
            name
            for name, session in self.database.sessions.items()
            if session.state is SessionState.RUNNING
        }
        assert running <= named, f"the host forgot {running - named}"

    def _send_command(
        self, connection: ServerConnection, command: StartInteractiveCmd | SendInput
    ) -> None:
        session = self.database.sessions[command.session_id]
        if session.state is SessionState.PENDING:
            session.become(SessionState.SENT)
        copies = 2 if self._scheduler.random.random() < self._plan.duplicate_probability else 1
        for _ in range(copies):
            connection.to_daemon.send(command)

    def _commit(self, connection: ServerConnection) -> None:
        """Commit one batch. Its answers are sent later, if the server lives that long."""
        batch, connection.queue = connection.queue, []
        if not self._is_alive or not batch:
            return
        for message in batch:
            if isinstance(message, InteractiveOutput):
                connection.window.committed(message.session_id, len(message.data))
                connection.in_session[message.session_id] -= len(message.data)
        if connection.epoch != self.database.epoch:
            return  # Fenced: a newer connection owns the controller.
        answers = [answer for message in batch if (answer := self._apply(message)) is not None]
        self._scheduler.soon(_COMMIT_SECONDS, lambda: self._answer(connection, answers))

    def _answer(self, connection: ServerConnection, answers: list[Message]) -> None:
        if self._is_alive:
            for answer in answers:
                connection.to_daemon.send(answer)

    def _apply(self, message: FromController) -> Message | None:
        match message:
            case Started():
                self._on_started(message)
            case InteractiveOutput() | Gap():
                return self._on_output(message)
            case InputAck():
                self.database.outbox.pop(message.command_seq, None)
                self.database.sessions[message.session_id].inputs_settled.setdefault(
                    message.input_seq, message
                )
            case InteractiveCmdDone():
                return self._on_done(message)
        return None

    def _on_started(self, message: Started) -> None:
        self.database.outbox.pop(message.command_seq, None)
        session = self.database.sessions[message.session_id]
        if session.state is SessionState.SENT:
            session.become(SessionState.RUNNING)

    def _on_output(self, message: InteractiveOutput | Gap) -> Ack:
        session = self.database.sessions[message.session_id]
        receiver = session.receivers[message.stream]
        if isinstance(message, InteractiveOutput):
            offset, data = receiver.accept(message.offset, message.data)
            if data:
                assert message.seq > session.last_output_seq, "new output carries an old seq"
                session.last_output_seq = message.seq
                session.pieces.append((message.stream, offset, data))
        elif (gap := receiver.accept_gap(message.from_offset, message.to_offset)) is not None:
            assert message.reason == "ring_overflow", "a gap where no ring overflowed"
            session.pieces.append((message.stream, gap[1] - gap[0], None))
        return Ack(offsets=[each for each in session.offsets() if each.stream == message.stream])

    def _on_done(self, message: InteractiveCmdDone) -> DoneAck:
        session = self.database.sessions[message.session_id]
        if session.done is None:
            for final in message.streams:
                assert final.next_offset == session.receivers[final.stream].expected, (
                    "DONE overtook output"
                )
            session.done = message
            session.become(SessionState.EXITED)
            self._settle_all_of(message.session_id)
        return DoneAck(session_ids=[message.session_id])

    def _settle_all_of(self, session_id: str) -> None:
        for seq in [
            seq for seq, command in self.database.outbox.items() if command.session_id == session_id
        ]:
            del self.database.outbox[seq]


def _size_bytes(message: FromController) -> int:
    return len(message.data) if isinstance(message, InteractiveOutput) else 0
