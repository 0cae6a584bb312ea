"""One connection to the server: the messages of one WebSocket, from the handshake to the close.

The only importer of websockets. Sending has two modes, so that a message is not delayed by a task
switch as long as the socket takes it:

* **Direct.** Each message is queued, and ``_pump`` writes frames at once until nothing may be sent
  or the socket's buffer holds WRITE_BUFFER_BYTES.
* **Congested.** While ``_congested`` is set, messages are only queued, and the task
  :meth:`Connection.write_when_congested` writes them as the buffer drains. It clears ``_congested``
  when nothing may be sent.

In both modes ``_next_frame`` chooses the next message: control messages first, then output as far
as the connection's window allows. What lies in the socket's buffer cannot be overtaken any more,
which is why that buffer is kept short.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import broadcast
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from controller_client.config.server_address import DIRECT, Way
from controller_client.protocol.codec import decode_from_server, encode
from controller_client.protocol.errors import FrameTooLarge, RemoteProtocolError
from controller_client.protocol.limits import (
    CONNECTION_WINDOW_BYTES,
    DEAD_AFTER_SECONDS,
    HEARTBEAT_SECONDS,
    MAX_FRAME_BYTES,
    CloseCode,
)
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
from controller_client.server_link.errors import SentAway, ServerRefused, ServerUnreachable
from controller_client.server_link.network.tls import client_context, with_hint

logger = logging.getLogger(__name__)

OPEN_SECONDS = 10.0
# The limit of the TLS handshake. Below OPEN_SECONDS, so that a timeout tells which step failed.
TLS_SECONDS = 5.0
WELCOME_SECONDS = 10.0
CLOSE_SECONDS = 2.0
# A server that asks for shorter heartbeats shortens the time after which it counts as dead.
_DEAD_AFTER_HEARTBEATS = DEAD_AFTER_SECONDS / HEARTBEAT_SECONDS
_DEAD_AFTER_AT_LEAST_SECONDS = 1.0
# Limits of what can lie in front of a control message: in the library's buffer, in the kernel's.
WRITE_BUFFER_BYTES = 32 * 1024
UNSENT_IN_KERNEL_BYTES = 64 * 1024
REFUSED_STATUSES = frozenset({401, 403, 426})
REFUSED_CLOSE_CODES = frozenset(
    {CloseCode.UNAUTHENTICATED, CloseCode.FORBIDDEN, CloseCode.SECOND_INSTANCE, CloseCode.VERSION}
)


class _Connect(connect):
    """Connects without following redirects, which websockets 17 does by itself.

    A redirect would take the credential to a server that the operator did not name.
    """

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Return the redirect as an error, which websockets then raises as InvalidStatus."""
        return exc


async def open_connection(
    url: str,
    credential: str,
    way: Way = DIRECT,
    *,
    dead_after_seconds: float = DEAD_AFTER_SECONDS,
) -> "Connection":
    """Connect to the server; HELLO is still to be sent.

    ``way`` has the proxy and the trusted certificates. After ``dead_after_seconds`` without a
    message :meth:`Connection.watch` aborts the connection.

    Raises ServerRefused if the server does not accept the credential, else ServerUnreachable.
    """
    is_secure = url.startswith("wss:")
    connecting = _Connect(
        url,
        additional_headers={"Authorization": f"Bearer {credential}"},
        compression=None,
        proxy=way.proxy,
        max_size=MAX_FRAME_BYTES,
        write_limit=WRITE_BUFFER_BYTES,
        open_timeout=OPEN_SECONDS,
        close_timeout=CLOSE_SECONDS,
        # The protocol has a PING of its own. A WebSocket ping is answered by the server's library,
        # even if the server itself hangs.
        ping_interval=None,
        ssl=client_context(way.ca_file) if is_secure else None,
        ssl_handshake_timeout=TLS_SECONDS if is_secure else None,
    )
    try:
        websocket = await connecting
    except InvalidStatus as error:
        status = error.response.status_code
        if status in REFUSED_STATUSES:
            raise ServerRefused(status) from None
        raise ServerUnreachable(f"the server answered the handshake with HTTP {status}") from None
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
        told = f"cannot connect: {error or type(error).__name__}"
        if is_secure:
            # asyncio raises this error if the TLS handshake takes longer than TLS_SECONDS.
            told = with_hint(told, error, timeout=ConnectionAbortedError)
        raise ServerUnreachable(told) from None
    _keep_kernel_queue_short(websocket)
    return Connection(websocket, dead_after_seconds)


def _keep_kernel_queue_short(websocket: ClientConnection) -> None:
    """Let the kernel buffer few unsent bytes, which control messages cannot overtake.

    A platform without the option only sends control messages later.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    raw = websocket.transport.get_extra_info("socket")
    if option is not None and raw is not None:
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.IPPROTO_TCP, option, UNSENT_IN_KERNEL_BYTES)


class Connection:
    """An open WebSocket. After WELCOME each message is sent with the epoch that WELCOME gave."""

    def __init__(self, websocket: ClientConnection, dead_after_seconds: float) -> None:
        self._websocket = websocket
        self._loop = asyncio.get_running_loop()
        self._sender = ConnectionSender(CONNECTION_WINDOW_BYTES)
        # The server ignores messages of older epochs. 0 before WELCOME.
        self._epoch = 0
        # Set while only the writer task writes; clear while each send writes at once.
        self._congested = asyncio.Event()
        # The time of the last message; after some seconds of silence ``watch`` aborts.
        self._last_received = self._loop.time()
        self._dead_after = dead_after_seconds

    @property
    def queued_bytes(self) -> int:
        """The bytes of output that wait for the socket or for the window."""
        return self._sender.queued_bytes

    # ---- handshake

    async def handshake(self, hello: Hello) -> Welcome:
        """Send HELLO and return the server's WELCOME.

        Raises ServerRefused, SentAway, or another ServerUnreachable.
        """
        self.send(hello)
        try:
            async with asyncio.timeout(WELCOME_SECONDS):
                message = await self._receive()
                while isinstance(message, Error):
                    _log_error(message)
                    message = await self._receive()
        except TimeoutError:
            raise ServerUnreachable("the server did not answer HELLO") from None
        if isinstance(message, Draining):
            raise SentAway(f"the server is being stopped: {message.reason[:256]}")
        if not isinstance(message, Welcome):
            raise ServerUnreachable(f"the server answered HELLO with {type(message).__name__}")
        self._epoch = message.epoch
        dead_after = _DEAD_AFTER_HEARTBEATS * message.heartbeat_seconds
        dead_after = max(dead_after, _DEAD_AFTER_AT_LEAST_SECONDS)
        # WELCOME can shorten the time, never lengthen it.
        self._dead_after = min(self._dead_after, dead_after)
        self._sender = ConnectionSender(message.connection_window_bytes)
        return message

    # ---- sending

    def send(self, message: Message) -> None:
        """Send a control message, which overtakes output.

        On a closed connection the message is dropped: both sides say what matters again after the
        next WELCOME.
        """
        self._sender.push_control(message)
        self._pump()

    def send_output(
        self, session_id: str, message: InteractiveOutput | Gap | InteractiveCmdDone
    ) -> None:
        """Send a message of a session's output, in order, within the connection's window."""
        self._sender.push_output(session_id, message)
        self._pump()

    def acknowledge(self, session_id: str, stream: Stream, offset: int) -> None:
        """Open the window: the server has committed everything before ``offset``."""
        self._sender.acknowledge(session_id, stream, offset)
        self._pump()

    def discard_queued(self, session_id: str) -> None:
        """Drop the session's queued output: its holder is going to send it again."""
        self._sender.discard_queued(session_id)

    def drop_session(self, session_id: str) -> None:
        """Forget a session whose end the server has committed."""
        self._sender.drop_session(session_id)
        self._pump()

    def _pump(self) -> None:
        """Write in direct mode; change to congested mode when the socket's buffer is full."""
        if self._congested.is_set():
            return
        transport = self._websocket.transport
        while transport.get_write_buffer_size() < WRITE_BUFFER_BYTES:
            frame = self._next_frame()
            if frame is None:
                return
            # websockets' send() is a coroutine; its broadcast() is the one way to write at once. It
            # does not wait for the buffer to drain, so the loop's condition bounds the buffer.
            broadcast((self._websocket,), frame, text=True)
        self._congested.set()

    def _next_frame(self) -> bytes | None:
        """Encode the next message; return None if nothing may be sent now."""
        while (message := self._sender.next()) is not None:
            if self._epoch:
                message = msgspec.structs.replace(message, epoch=self._epoch)
            try:
                return encode(message)
            except FrameTooLarge:
                logger.exception("a %s was too large to send", type(message).__name__)
        return None

    async def write_when_congested(self) -> None:
        """Send while the connection is congested.

        Ends when a send finds the connection closed. A task that has nothing to send does not
        notice that, so the caller has to cancel it.
        """
        with contextlib.suppress(ConnectionClosed):
            while True:
                await self._congested.wait()
                while (frame := self._next_frame()) is not None:
                    await self._websocket.send(frame, text=True)
                self._congested.clear()

    # ---- receiving

    async def receive_all(self, on_message: Callable[[FromServer], None]) -> None:
        """Give each message to ``on_message`` until the connection ends.

        Always raises: ServerRefused if the server's close code refuses the daemon, else
        ServerUnreachable.
        """
        while True:
            message = await self._receive()
            if isinstance(message, Error):
                _log_error(message)
            on_message(message)

    async def _receive(self) -> FromServer:
        try:
            frame = await self._websocket.recv(decode=False)
        except ConnectionClosed as error:
            raise _error_of(error) from None
        self._last_received = self._loop.time()
        try:
            return decode_from_server.decode(frame)
        except RemoteProtocolError as error:
            await self._refuse(error)
            raise ServerUnreachable(f"the server broke the protocol: {error}") from None

    async def _refuse(self, error: RemoteProtocolError) -> None:
        with contextlib.suppress(ConnectionClosed):
            await self._websocket.send(
                encode(Error(code=error.code, message=str(error), epoch=self._epoch)), text=True
            )
        await self._websocket.close(error.close_code)

    async def watch(self) -> None:
        """The watchdog task: aborts a connection on which nothing arrives for too long."""
        while True:
            left = self._last_received + self._dead_after - self._loop.time()
            if left <= 0:
                break
            await asyncio.sleep(left)
        logger.warning("nothing received for %.0f s; the connection is dead", self._dead_after)
        self._websocket.transport.abort()

    async def close(self, reason: str | None = None) -> None:
        """Close the connection; with a ``reason``, tell the server first by DRAINING.

        Never raises. Takes about CLOSE_SECONDS if the server does not answer.
        """
        if reason is not None:
            self.send(Draining(reason=reason))
        with contextlib.suppress(ConnectionClosed, OSError):
            await self._websocket.close()


def _error_of(error: ConnectionClosed) -> ServerUnreachable:
    if error.rcvd is not None and error.rcvd.code in REFUSED_CLOSE_CODES:
        return ServerRefused(error.rcvd.code, error.rcvd.reason)
    if error.rcvd is not None and error.rcvd.code == CloseCode.AWAITS_APPROVAL:
        return ServerUnreachable(
            "enrolled, and waiting for an operator of the server to approve this host"
        )
    return ServerUnreachable(f"connection lost: {error}")


def _log_error(message: Error) -> None:
    logger.error("the server reports %s: %s", message.code, message.message)
