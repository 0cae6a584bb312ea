"""One WebSocket life: bytes to messages and back. The only importer of websockets.

Sending is synchronous. A message goes straight to the socket while the socket takes it, with no task in between; when
the socket's buffer fills, one writer task goes on as it drains. The control lane overtakes output in both cases.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import broadcast
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from controller_client.errors import ServerRefused, ServerUnreachable
from controller_client.protocol.codec import decode_from_server, encode
from controller_client.protocol.errors import FrameTooLarge, RemoteProtocolError
from controller_client.protocol.limits import CONNECTION_WINDOW_BYTES, DEAD_AFTER_SECONDS, HEARTBEAT_SECONDS, MAX_FRAME_BYTES, CloseCode
from controller_client.protocol.messages import (
    Draining,
    Error,
    FromServer,
    Gap,
    Hello,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Stream,
    Welcome,
)
from controller_client.protocol.resume import ConnectionSender

logger = logging.getLogger(__name__)

OPEN_SECONDS = 10.0
WELCOME_SECONDS = 10.0
CLOSE_SECONDS = 2.0
# A server that asks for quicker heartbeats also means to be given up on sooner.
_DEAD_AFTER_HEARTBEATS = DEAD_AFTER_SECONDS / HEARTBEAT_SECONDS
_DEAD_AFTER_AT_LEAST_SECONDS = 1.0
# What may wait in front of a control message: beyond this, output stays in our own queue, where control overtakes it.
WRITE_BUFFER_BYTES = 32 * 1024
UNSENT_IN_KERNEL_BYTES = 64 * 1024
REFUSED_STATUSES = frozenset({401, 403, 426})
REFUSED_CLOSE_CODES = frozenset({CloseCode.UNAUTHENTICATED, CloseCode.FORBIDDEN, CloseCode.SECOND_INSTANCE, CloseCode.VERSION})


class _Connect(connect):
    """A server that answers with a redirect is not the one the operator named."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def open_connection(url: str, credential: str, *, dead_after_seconds: float = DEAD_AFTER_SECONDS) -> "Connection":
    """A connection that has not said HELLO yet. Raises ServerRefused, ServerUnreachable."""
    connecting = _Connect(
        url,
        additional_headers={"Authorization": f"Bearer {credential}"},
        compression=None,
        proxy=None,
        max_size=MAX_FRAME_BYTES,
        write_limit=WRITE_BUFFER_BYTES,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        # PING and PONG of the protocol prove that the application lives, not only its socket.
        ping_interval=None,
        ssl=_tls() if url.startswith("wss:") else None,
    )
    try:
        websocket = await connecting
    except InvalidStatus as error:
        status = error.response.status_code
        if status in REFUSED_STATUSES:
            raise ServerRefused(status) from None
        raise ServerUnreachable(f"the server answered the handshake with HTTP {status}") from None
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
        raise ServerUnreachable(f"cannot connect: {error or type(error).__name__}") from None
    _keep_kernel_queue_short(websocket)
    return Connection(websocket, dead_after_seconds)


def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _keep_kernel_queue_short(websocket: ClientConnection) -> None:
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    raw = websocket.transport.get_extra_info("socket")
    if option is not None and raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.IPPROTO_TCP, option, UNSENT_IN_KERNEL_BYTES)


class Connection:
    """The messages of one WebSocket. Every send is stamped with the epoch WELCOME gave."""

    def __init__(self, websocket: ClientConnection, dead_after_seconds: float) -> None:
        self._websocket = websocket
        self._loop = asyncio.get_running_loop()
        self._sender = ConnectionSender(CONNECTION_WINDOW_BYTES)
        self._epoch = 0
        self._congested = asyncio.Event()
        self._last_received = self._loop.time()
        self._dead_after = dead_after_seconds

    @property
    def epoch(self) -> int:
        """The fence WELCOME gave; 0 before."""
        return self._epoch

    @property
    def queued_bytes(self) -> int:
        """Output that waits for the socket or the window."""
        return self._sender.queued_bytes

    # ---- handshake

    async def handshake(self, hello: Hello) -> Welcome:
        """Say HELLO, have WELCOME. Raises ServerRefused, ServerUnreachable."""
        self.send(hello)
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                message = await self._receive()
                while isinstance(message, Error):
                    _log_error(message)
                    message = await self._receive()
        except TimeoutError:
            raise ServerUnreachable("the server did not answer HELLO") from None
        if not isinstance(message, Welcome):
            raise ServerUnreachable(f"the server answered HELLO with {type(message).__name__}")
        self._epoch = message.epoch
        self._dead_after = min(self._dead_after, max(_DEAD_AFTER_AT_LEAST_SECONDS, _DEAD_AFTER_HEARTBEATS * message.heartbeat_seconds))
        self._sender = ConnectionSender(message.connection_window_bytes)
        return message

    # ---- sending

    def send(self, message: Message) -> None:
        """Send on the control lane. On a closed connection it is dropped: whoever needs it is told again after the next WELCOME."""
        self._sender.push_control(message)
        self._pump()

    def send_output(self, session_id: str, message: InteractiveOutput | Gap | InteractiveCmdDone) -> None:
        """Send on the session's output lane, in order, inside the connection's window."""
        self._sender.push_output(session_id, message)
        self._pump()

    def acknowledge(self, session_id: str, stream: Stream, offset: int) -> None:
        """The server committed everything before ``offset``: the window opens."""
        self._sender.acknowledge(session_id, stream, offset)
        self._pump()

    def drop_session(self, session_id: str) -> None:
        """Forget what is queued for a session."""
        self._sender.drop_session(session_id)
        self._pump()

    def _pump(self) -> None:
        """Write while the socket takes it; hand over to the writer task when it does not."""
        if self._congested.is_set():
            return
        transport = self._websocket.transport
        while transport.get_write_buffer_size() < WRITE_BUFFER_BYTES:
            frame = self._next_frame()
            if frame is None:
                return
            # The library's one synchronous send. What it would leave unbounded is bounded by the loop's condition.
            broadcast((self._websocket,), frame, text=True)
        self._congested.set()

    def _next_frame(self) -> bytes | None:
        while (message := self._sender.next()) is not None:
            try:
                return encode(msgspec.structs.replace(message, epoch=self._epoch))
            except FrameTooLarge:
                logger.exception("a %s was too large to send", type(message).__name__)
        return None

    async def write_when_congested(self) -> None:
        """The writer task: goes on with sending each time the socket's buffer was full. Ends with the connection."""
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._congested.wait()
                while (frame := self._next_frame()) is not None:
                    await self._websocket.send(frame, text=True)
                self._congested.clear()

    # ---- receiving

    async def receive_all(self, on_message: Callable[[FromServer], None]) -> None:
        """Hand every message to ``on_message`` until the connection ends. Raises ServerRefused, ServerUnreachable."""
        while True:
            message = await self._receive()
            if isinstance(message, Error):
                _log_error(message)
            on_message(message)

    async def _receive(self) -> FromServer:
        try:
            frame = await self._websocket.recv(decode=False)
        except ConnectionClosed as error:
            raise _reason(error) from None
        self._last_received = self._loop.time()
        try:
            return decode_from_server.decode(frame)
        except RemoteProtocolError as error:
            await self._refuse(error)
            raise ServerUnreachable(f"the server broke the protocol: {error}") from None

    async def _refuse(self, error: RemoteProtocolError) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._websocket.send(encode(Error(code=error.code, message=str(error), epoch=self._epoch)), text=True)
        await self._websocket.close(error.close_code)

    async def watch(self) -> None:
        """The watchdog task: cuts a connection on which nothing has arrived for ``dead_after_seconds``."""
        while True:
            left = self._last_received + self._dead_after - self._loop.time()
            if left <= 0:
                break
            await asyncio.sleep(left)
        logger.warning("nothing received for %.0f s; the connection is dead", self._dead_after)
        self._websocket.transport.abort()

    async def close(self, reason: str | None = None) -> None:
        """Close; with ``reason``, say DRAINING first. Never raises, and takes no longer than CLOSE_SECONDS or so."""
        if reason is not None:
            self.send(Draining(reason=reason))
        with contextlib.suppress(ConnectionClosed, OSError):
            await self._websocket.close()


def _reason(error: ConnectionClosed) -> ServerUnreachable:
    if error.rcvd is not None and error.rcvd.code in REFUSED_CLOSE_CODES:
        return ServerRefused(error.rcvd.code, error.rcvd.reason)
    if error.rcvd is not None and error.rcvd.code == CloseCode.AWAITS_APPROVAL:
        return ServerUnreachable("enrolled, and waiting for an operator of the server to approve this host")
    return ServerUnreachable(f"connection lost: {error}")


def _log_error(message: Error) -> None:
    logger.error("the server reports %s: %s", message.code, message.message)
