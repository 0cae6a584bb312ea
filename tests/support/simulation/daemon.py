"""The simulated daemon. All it knows dies with it; holders and server know enough to go on."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from controller_client.protocol.codec import decode_from_holder, decode_from_server
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    Gap,
    Hello,
    HolderAttach,
    HolderDetach,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    SendInput,
    SessionDirective,
    Started,
    StartInteractiveCmd,
    StreamOffset,
    Welcome,
)
from controller_client.protocol.resume import ConnectionSender
from tests.support.simulation.holder import SimulatedHolder
from tests.support.simulation.link import Link
from tests.support.simulation.scheduler import Scheduler

# Longer than a real socket takes. So frames of one attachment can still be under way when the next
# attachment begins.
_LOCAL_DELAY: Final = 0.05


class HolderSocket:
    """The daemon's end of one holder's socket.

    Frames that the holder sent before it read HOLDER_ATTACH belong to the previous attachment. Its
    STARTED marks the border.
    """

    def __init__(
        self, scheduler: Scheduler, holder: SimulatedHolder, on_frame: Callable[[bytes], None]
    ) -> None:
        self.from_holder = Link(scheduler, on_frame, longest_delay=_LOCAL_DELAY)
        self.to_holder = Link(
            scheduler,
            lambda frame: holder.receive(frame, self.from_holder),
            longest_delay=_LOCAL_DELAY,
        )
        self.awaited_starts = 0
        holder.connect(self.from_holder)

    def cut(self, *, keeps_in_flight: bool) -> None:
        """Cut the socket as the daemon's death does.

        Frames of the daemon may still reach the holder; frames of the holder reach nobody.
        """
        self.to_holder.cut(keeps_in_flight=keeps_in_flight)
        self.from_holder.cut(keeps_in_flight=False)


class SimulatedDaemon:
    """One life of the daemon process."""

    def __init__(
        self,
        scheduler: Scheduler,
        host: dict[str, SimulatedHolder],
        spawn: Callable[[StartInteractiveCmd], None],
    ) -> None:
        self._scheduler = scheduler
        self._host = host
        self._spawn = spawn
        self._sockets: dict[str, HolderSocket] = {}
        self._sender: ConnectionSender | None = None
        self._to_server: Link | None = None
        self._epoch = 0
        self._window_bytes = 0
        for session_id in host:
            self._connect(session_id)

    def connected(self, to_server: Link) -> None:
        """Send HELLO on a new connection to the server."""
        self._to_server = to_server
        to_server.send(
            Hello(
                versions=[1],
                client_version="0",
                instance_id="i",
                boot_id="b",
                os="linux",
                platform="linux",
                hostname="h",
                capabilities=[],
                last_cmd_seq=0,
                sessions=[
                    holder.summary() for holder in self._host.values() if not holder.is_forgotten
                ],
            )
        )

    def disconnected(self) -> None:
        """Drop the connection to the server with everything that was queued for it."""
        self._sender = self._to_server = None
        for session_id, socket in self._sockets.items():
            socket.to_holder.send(HolderDetach(session_id=session_id))

    def crash(self) -> None:
        keeps = self._scheduler.random.random() < 0.5
        for socket in self._sockets.values():
            socket.cut(keeps_in_flight=keeps)

    def receive(self, frame: bytes) -> None:
        match decode_from_server.decode(frame):
            case Welcome() as welcome:
                self._on_welcome(welcome)
            case StartInteractiveCmd() as start:
                self._on_start(start)
            case SendInput() as message:
                self._to(message.session_id, message)
            case Ack(offsets=offsets):
                self._on_ack(offsets)
            case DoneAck(session_ids=session_ids):
                for session_id in session_ids:
                    self._forget(session_id)
        self._pump()

    def _on_welcome(self, welcome: Welcome) -> None:
        self._epoch = welcome.epoch
        self._sender = ConnectionSender(welcome.connection_window_bytes)
        self._window_bytes = welcome.session_window_bytes
        for directive in welcome.sessions:
            self._follow(directive)

    def _follow(self, directive: SessionDirective) -> None:
        if directive.action == "forget":
            self._forget(directive.session_id)
        else:
            self._attach(directive.session_id, list(directive.expected))

    def _on_start(self, start: StartInteractiveCmd) -> None:
        if start.session_id in self._host:
            assert not self._host[start.session_id].is_forgotten, "START of a session that is over"
            return  # The program runs already. Its STARTED comes with the attachment.
        self._spawn(start)
        self._connect(start.session_id)
        self._attach(start.session_id, [])

    def _on_ack(self, offsets: list[StreamOffset]) -> None:
        assert self._sender is not None
        for each in offsets:
            self._sender.acknowledge(each.session_id, each.stream, each.offset)
            self._to(each.session_id, Ack(offsets=[each]))

    def _forget(self, session_id: str) -> None:
        if self._sender is not None:
            self._sender.drop_session(session_id)
        self._to(session_id, DoneAck(session_ids=[session_id]))

    def _connect(self, session_id: str) -> None:
        self._sockets[session_id] = HolderSocket(
            self._scheduler,
            self._host[session_id],
            lambda frame: self._on_holder_frame(session_id, frame),
        )

    def _attach(self, session_id: str, offsets: list[StreamOffset]) -> None:
        self._sockets[session_id].awaited_starts += 1
        self._to(
            session_id,
            HolderAttach(session_id=session_id, window_bytes=self._window_bytes, offsets=offsets),
        )

    def _to(self, session_id: str, message: Message) -> None:
        socket = self._sockets.get(session_id)
        if socket is not None:
            socket.to_holder.send(message)

    def _on_holder_frame(self, session_id: str, frame: bytes) -> None:
        message = decode_from_holder.decode(frame)
        socket = self._sockets[session_id]
        if isinstance(message, Started):
            socket.awaited_starts -= 1
        if self._sender is None:
            return
        if isinstance(message, InteractiveOutput | Gap | InteractiveCmdDone):
            if socket.awaited_starts <= 0:
                self._sender.push_output(session_id, message)
        else:
            self._sender.push_control(message)
        self._pump()

    def _pump(self) -> None:
        if self._sender is None or self._to_server is None:
            return
        while (message := self._sender.next()) is not None:
            self._to_server.send(replace(message, epoch=self._epoch))
