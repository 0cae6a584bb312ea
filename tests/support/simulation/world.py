"""The whole simulated world: its parts, its faults, and the checks at its end."""

from typing import Final

from controller_client.protocol.messages import SendInput, StartInteractiveCmd, Stream
from controller_client.protocol.resume import StreamReceiver
from controller_client.protocol.session_state import SessionState
from tests.support.simulation.daemon import SimulatedDaemon
from tests.support.simulation.holder import SimulatedHolder
from tests.support.simulation.link import Link
from tests.support.simulation.plan import SessionPlan, WorldPlan
from tests.support.simulation.scheduler import Scheduler
from tests.support.simulation.server import Database, SimulatedServer, StoredSession

_MAX_FAULTS: Final = 12
_MAX_STEPS: Final = 20_000
_NETWORK_DELAY: Final = 0.05
_RESTART_SECONDS: Final = 0.3
_AGENT_SECONDS: Final = 0.3


class World:
    """One simulated run, determined by its seed alone."""

    def __init__(self, seed: int) -> None:
        self.scheduler = Scheduler(seed)
        self.plan = WorldPlan.draw(self.scheduler.random)
        self.host: dict[str, SimulatedHolder] = {}
        self.database = Database({plan.session_id: _stored(plan) for plan in self.plan.sessions})
        self.spawns: list[str] = []
        self.faults: list[str] = []
        self._server: SimulatedServer | None = None
        self._daemon: SimulatedDaemon | None = None
        self._links: tuple[Link, Link] | None = None

    def run(self) -> None:
        """Run until nothing is left to happen. Raises AssertionError if a promise is broken."""
        self._start_server()
        self._start_daemon()
        for plan in self.plan.sessions:
            self.scheduler.soon(_AGENT_SECONDS, lambda plan=plan: self._agent_starts(plan))
        for _ in range(_MAX_STEPS):
            if not self.scheduler.run_next():
                break
            self._maybe_fault()
        else:
            raise AssertionError(f"still going on after {_MAX_STEPS} steps")
        for session in self.database.sessions.values():
            self._check_end(session)

    # ---- processes and the network between them

    def _start_server(self) -> None:
        self._server = SimulatedServer(self.scheduler, self.plan, self.database)

    def _start_daemon(self) -> None:
        self._daemon = SimulatedDaemon(self.scheduler, self.host, self._spawn)
        self._dial_soon(self._daemon)

    def _dial_soon(self, daemon: SimulatedDaemon) -> None:
        self.scheduler.soon(_RESTART_SECONDS, lambda: self._dial(daemon))

    def _dial(self, daemon: SimulatedDaemon) -> None:
        server = self._server
        if daemon is not self._daemon or self._links is not None:
            return
        if server is None:
            self._dial_soon(daemon)
            return
        to_daemon = Link(
            self.scheduler,
            lambda frame: self._receive(daemon, to_daemon, frame),
            longest_delay=_NETWORK_DELAY,
        )
        connection = server.accept(to_daemon, on_close=lambda: self._on_server_closed(to_daemon))
        to_server = Link(
            self.scheduler,
            lambda frame: server.receive(connection, frame),
            longest_delay=_NETWORK_DELAY,
        )
        self._links = (to_daemon, to_server)
        daemon.connected(to_server)

    def _receive(self, daemon: SimulatedDaemon, link: Link, frame: bytes) -> None:
        """Deliver a frame to the daemon.

        A frame is dropped if its daemon is dead or has given up its connection.
        """
        if daemon is self._daemon and self._links is not None and link is self._links[0]:
            daemon.receive(frame)

    def _on_server_closed(self, to_daemon: Link) -> None:
        if self._links is not None and self._links[0] is to_daemon:
            self._cut_network()

    def _cut_network(self) -> None:
        """Cut the connection between daemon and server.

        Frames to the server may still arrive, even after those of the next connection. The epoch
        must fence them off.
        """
        if self._links is None:
            return
        to_daemon, to_server = self._links
        to_daemon.cut(keeps_in_flight=False)
        to_server.cut(keeps_in_flight=self.scheduler.random.random() < 0.5)
        self._links = None
        if self._daemon is not None:
            self._daemon.disconnected()
            self._dial_soon(self._daemon)

    # ---- faults

    def _maybe_fault(self) -> None:
        random = self.scheduler.random
        if len(self.faults) < _MAX_FAULTS and random.random() < self.plan.fault_probability:
            fault = random.choice((self._cut_network, self._crash_daemon, self._crash_server))
            self.faults.append(f"{self.scheduler.now:.3f} {fault.__name__}")
            fault()

    def _crash_daemon(self) -> None:
        if self._daemon is None:
            return
        daemon, self._daemon = self._daemon, None
        daemon.crash()
        self._cut_network()
        self.scheduler.soon(_RESTART_SECONDS, self._start_daemon)

    def _crash_server(self) -> None:
        if self._server is None:
            return
        self._server.crash()
        self._server = None
        self._cut_network()
        self.scheduler.soon(_RESTART_SECONDS, self._start_server)

    # ---- the callers

    def _spawn(self, start: StartInteractiveCmd) -> None:
        plan = self.database.sessions[start.session_id].plan
        self.spawns.append(start.session_id)
        self.host[start.session_id] = SimulatedHolder(self.scheduler, start, plan)

    def _agent_starts(self, plan: SessionPlan) -> None:
        if self._server is None:
            self.scheduler.soon(_AGENT_SECONDS, lambda: self._agent_starts(plan))
            return
        self._server.create_command(
            StartInteractiveCmd(
                seq=self._next_seq(),
                session_id=plan.session_id,
                command="true",
                ring_bytes=plan.ring_bytes,
                overflow=plan.overflow,
            )
        )
        self._agent_types_soon(plan)

    def _agent_types_soon(self, plan: SessionPlan) -> None:
        self.scheduler.soon(_AGENT_SECONDS, lambda: self._agent_types(plan))

    def _agent_types(self, plan: SessionPlan) -> None:
        session = self.database.sessions[plan.session_id]
        if session.inputs_created == len(plan.inputs):
            return
        if self._server is not None and session.state is SessionState.RUNNING:
            data = plan.inputs[session.inputs_created]
            session.inputs_created += 1
            self._server.create_command(
                SendInput(
                    seq=self._next_seq(),
                    session_id=plan.session_id,
                    input_seq=session.inputs_created,
                    data=data,
                )
            )
        self._agent_types_soon(plan)

    def _next_seq(self) -> int:
        self.database.last_command_seq += 1
        return self.database.last_command_seq

    # ---- what must hold

    def _check_end(self, session: StoredSession) -> None:
        plan = session.plan
        assert session.state is SessionState.EXITED, (
            f"{plan.session_id} is stuck in {session.state}"
        )
        assert self.spawns.count(plan.session_id) == 1, (
            f"{plan.session_id} was spawned {self.spawns.count(plan.session_id)} times"
        )
        holder = self.host[plan.session_id]
        assert holder.is_forgotten, "the host still keeps the session"
        assert tuple(holder.applied) == plan.inputs, (
            "inputs were not applied exactly once, in order"
        )
        for seq, ack in session.inputs_settled.items():
            assert ack.accepted_bytes == len(plan.inputs[seq - 1]), (
                "an answer belongs to another input"
            )
        for stream in plan.streams:
            check_delivery(session, holder, stream)
        if all(data is not None for _, _, data in session.pieces):
            # Nothing is gone, so the streams also keep the order they had between them.
            assert _in_order(session.pieces) == _in_order(
                [(stream, 0, data) for stream, data in holder.production]
            )
        assert not self.database.outbox, "commands were never settled"


def check_delivery(session: StoredSession, holder: SimulatedHolder, stream: Stream) -> None:
    """Check that data and gaps together are exactly the bytes produced, each in its place.

    Pieces are only ever added. So a check of all pieces holds for every prefix, after every step.
    """
    produced, position, lost = holder.produced(stream), 0, 0
    for _, offset_or_size, data in [piece for piece in session.pieces if piece[0] == stream]:
        if data is None:
            position, lost = position + offset_or_size, lost + offset_or_size
        else:
            assert offset_or_size == position, "a piece is out of place"
            assert data == produced[position : position + len(data)], (
                "delivered bytes are not what was produced"
            )
            position += len(data)
    assert position == len(produced), "bytes are missing at the end"
    if session.plan.overflow == "block" or session.plan.loses_nothing:
        assert not lost, "bytes were lost that the ring had to keep"


def _in_order(pieces: list[tuple[Stream, int, bytes | None]]) -> list[tuple[Stream, bytes]]:
    """The same bytes in the same order, cut only where the stream changes."""
    merged: list[tuple[Stream, bytes]] = []
    for stream, _, data in pieces:
        if merged and merged[-1][0] == stream:
            merged[-1] = (stream, merged[-1][1] + (data or b""))
        else:
            merged.append((stream, data or b""))
    return merged


def _stored(plan: SessionPlan) -> StoredSession:
    return StoredSession(
        plan, receivers={stream: StreamReceiver(0, stream=stream) for stream in plan.streams}
    )
