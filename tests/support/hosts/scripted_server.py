"""A server for tests of the daemon: the real codec over real WebSockets, in memory.

It does what the test says. It stores output as the real server would (exactly once, by offset). So
a test can cut connections at any time and compare the transcript afterwards.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar
from uuid import uuid4

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from controller_client.protocol.codec import decode_from_controller, encode
from controller_client.protocol.limits import (
    CONNECTION_WINDOW_BYTES,
    LEASE_SECONDS,
    MAX_FRAME_BYTES,
    SESSION_WINDOW_BYTES,
)
from controller_client.protocol.messages import (
    Ack,
    DirectiveAction,
    DoneAck,
    FromController,
    Gap,
    Hello,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Ping,
    Pong,
    SessionDirective,
    SessionSummary,
    Started,
    StartInteractiveCmd,
    Stream,
    StreamOffset,
    Welcome,
)
from controller_client.protocol.resume import StreamReceiver
from tests.support.waiting import await_until

T = TypeVar("T")
CREDENTIAL = "ctl_test_" + "s" * 43


@dataclass
class Transcript:
    """The output of one session as the server has it, and the messages about its start and end.

    ``data`` is stdout, which is everything a terminal shows.
    """

    data: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    gaps: list[tuple[int, int, str]] = field(default_factory=list)
    receiver: StreamReceiver = field(default_factory=lambda: StreamReceiver(0))
    stderr_receiver: StreamReceiver = field(
        default_factory=lambda: StreamReceiver(0, stream="stderr")
    )
    started: list[Started] = field(default_factory=list)
    done: list[InteractiveCmdDone] = field(default_factory=list)
    states: list[str] = field(default_factory=list)

    def receiver_of(self, stream: Stream) -> StreamReceiver:
        return self.stderr_receiver if stream == "stderr" else self.receiver

    @property
    def sha256(self) -> str:
        """The digest of all of stdout; it equals the one of DONE if nothing is missing."""
        return hashlib.sha256(self.data).hexdigest()


class ScriptedServer:
    """A server on one port for at most one controller.

    Its attributes are the script. A test may change them at any time.
    """

    def __init__(self) -> None:
        self.refuse_with: HTTPStatus | None = None
        self.close_after_hello: int | None = None
        self.answers_hello = True
        self.acknowledges = True
        self.acknowledges_done = True
        self.awaits_silent = False
        self.heartbeat_seconds = 10.0
        self.actions: dict[str, DirectiveAction] = {}
        self.on_output: Callable[[InteractiveOutput], None] = lambda message: None
        self.authorizations: list[str | None] = []
        self.request_headers: list[dict[str, str]] = []
        self.hellos: list[Hello] = []
        self.received: list[FromController] = []
        self.close_codes: list[int | None] = []
        self.transcripts: dict[str, Transcript] = {}
        self.epoch = 0
        self._server: Server | None = None
        self._connection: ServerConnection | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """The address to which the daemon connects."""
        return f"ws://127.0.0.1:{self._port}/ws/controller/"

    async def start(self) -> None:
        """Listen; on the same port as before if the server was started before."""
        self._server = await serve(
            self._handle,
            "127.0.0.1",
            self._port,
            process_request=self._admit,
            compression=None,
            max_size=MAX_FRAME_BYTES,
            ping_interval=None,
        )
        self._port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Disappear without a close frame, as a killed process does."""
        if self._server is not None:
            self.cut()
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    def cut(self) -> None:
        """Reset the connection to the controller."""
        if self._connection is not None:
            self._connection.transport.abort()

    async def close(self, code: int) -> None:
        """Close the connection with a code of the protocol."""
        assert self._connection is not None
        await self._connection.close(code)

    async def send(self, message: Message) -> None:
        """Send a message to the connected controller."""
        assert self._connection is not None
        await self._connection.send(encode(message), text=True)

    async def send_raw(self, frame: str | bytes) -> None:
        """Send a frame that no codec would make."""
        assert self._connection is not None
        await self._connection.send(frame)

    async def connected(self, count: int = 1, seconds: float = 90.0) -> Hello:
        """Wait for HELLO number ``count`` to be answered, and return that HELLO."""
        await await_until(
            lambda: len(self.hellos) >= count and self._connection is not None,
            seconds,
            f"HELLO number {count}",
        )
        return self.hellos[count - 1]

    async def wait_for(
        self,
        kind: type[T],
        matches: Callable[[T], bool] = lambda message: True,
        seconds: float = 90.0,
    ) -> T:
        """The first message of a kind that matches; waits for it."""
        found = await await_until(
            lambda: [
                message
                for message in self.received
                if isinstance(message, kind) and matches(message)
            ],
            seconds,
            kind.__name__,
        )
        return found[0]

    def transcript(self, session_id: str) -> Transcript:
        """The session's transcript; naming it makes the session known to the server."""
        return self.transcripts.setdefault(session_id, Transcript())

    async def begin(self, session_id: str = "", **fields: Any) -> str:
        """Send a START with these fields, its number the next one; return the session's id."""
        session_id = session_id or str(uuid4())
        self.transcript(session_id)
        seq = len(self.transcripts)
        await self.send(StartInteractiveCmd(seq=seq, session_id=session_id, **fields))
        return session_id

    async def done(self, session_id: str, seconds: float = 90.0) -> InteractiveCmdDone:
        """The end of a session; waits for it."""
        transcript = self.transcript(session_id)
        return (await await_until(lambda: transcript.done, seconds, "INTERACTIVE_CMD_DONE"))[0]

    async def shows(self, session_id: str, text: bytes, seconds: float = 90.0) -> None:
        """Wait until the output of a session has this text."""
        data = self.transcript(session_id).data
        await await_until(lambda: text in data, seconds, f"{text!r} in the output")

    # ---- one connection

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        self.request_headers.append(dict(request.headers.raw_items()))
        self.authorizations.append(request.headers.get("Authorization"))
        return None if self.refuse_with is None else connection.respond(self.refuse_with, "no\n")

    async def _handle(self, connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            hello = decode_from_controller.decode(await connection.recv(decode=False))
            assert isinstance(hello, Hello)
            if self.close_after_hello is not None:
                self.hellos.append(hello)
                await connection.close(self.close_after_hello)
                return
            if self.answers_hello:
                self.epoch += 1
                await connection.send(encode(self._welcome(hello)), text=True)
            self._connection = connection
            self.hellos.append(hello)
            while True:
                await self._take(
                    connection, decode_from_controller.decode(await connection.recv(decode=False))
                )
        self.close_codes.append(connection.close_code)
        if self._connection is connection:
            self._connection = None

    def _welcome(self, hello: Hello) -> Welcome:
        return Welcome(
            epoch=self.epoch,
            heartbeat_seconds=self.heartbeat_seconds,
            lease_seconds=LEASE_SECONDS,
            session_window_bytes=SESSION_WINDOW_BYTES,
            connection_window_bytes=CONNECTION_WINDOW_BYTES,
            sessions=[self._directive(summary) for summary in hello.sessions],
        )

    def _directive(self, summary: SessionSummary) -> SessionDirective:
        session_id = summary.session_id
        known = self.transcripts.get(session_id)
        if known is None:
            return SessionDirective(session_id=session_id, action="forget")
        streams = [position.stream for position in summary.streams] or ["stdout"]
        expected = [
            StreamOffset(
                session_id=session_id, stream=stream, offset=known.receiver_of(stream).expected
            )
            for stream in streams
        ]
        return SessionDirective(
            session_id=session_id,
            action=self.actions.get(session_id, "continue"),
            expected=expected,
            is_awaited=self.awaits_silent and not summary.streams,
        )

    async def _take(self, connection: ServerConnection, message: FromController) -> None:
        assert message.epoch == self.epoch
        self.received.append(message)
        if isinstance(message, InteractiveOutput):
            await self._take_output(connection, message)
        elif isinstance(message, Gap):
            transcript = self.transcript(message.session_id)
            if (
                new := transcript.receiver_of(message.stream).accept_gap(
                    message.from_offset, message.to_offset
                )
            ) is not None:
                transcript.gaps.append((*new, message.reason))
        elif isinstance(message, Started):
            self.transcript(message.session_id).started.append(message)
        elif isinstance(message, InteractiveCmdDone):
            self.transcript(message.session_id).done.append(message)
            if self.acknowledges_done:
                await connection.send(
                    encode(DoneAck(session_ids=[message.session_id], epoch=self.epoch)), text=True
                )
        elif isinstance(message, Ping):
            await connection.send(encode(Pong(reply_to=message.id, epoch=self.epoch)), text=True)

    async def _take_output(self, connection: ServerConnection, message: InteractiveOutput) -> None:
        transcript = self.transcript(message.session_id)
        receiver = transcript.receiver_of(message.stream)
        _, data = receiver.accept(message.offset, message.data)
        if message.stream == "stderr":
            transcript.stderr += data
        else:
            transcript.data += data
        if message.terminal is not None:
            transcript.states.append(message.terminal.state)
        self.on_output(message)
        if self.acknowledges:
            end = StreamOffset(
                session_id=message.session_id, stream=message.stream, offset=receiver.expected
            )
            await connection.send(encode(Ack(offsets=[end], epoch=self.epoch)), text=True)


@contextlib.asynccontextmanager
async def scripted_server() -> "contextlib.AsyncIterator[ScriptedServer]":
    """A started server that is stopped after the block."""
    server = ScriptedServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        await asyncio.sleep(0)
