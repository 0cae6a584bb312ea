"""The daemon's end of a holder's unix socket: it turns frames into messages and back.

Only a holder of the same user is accepted, and only the one that is known: the kernel tells the
user and the process of the other end.
"""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable
from typing import Self, cast

from controller_client.protocol.codec import decode_from_holder, encode
from controller_client.protocol.errors import ProtocolError
from controller_client.protocol.messages import (
    Error,
    FromHolder,
    HolderHello,
    Message,
    SessionSummary,
)
from controller_client.server_link.errors import HolderUnreachable
from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.framing import Unpacker, pack
from controller_client.session_files.peer_credentials import is_same_user, peer_pid

logger = logging.getLogger(__name__)

HELLO_SECONDS = 2.0


def error_named(name: str) -> OSError:
    """Return the error of an errno's name, or EAGAIN for any other text."""
    number = getattr(errno, name, errno.EAGAIN)
    return OSError(number, os.strerror(number))


def nothing() -> None:
    """Do nothing when a conversation ends."""


def ignore(_message: FromHolder) -> None:
    """Take no notice of a message."""


class HolderClient(asyncio.Protocol):
    """One conversation with one holder. It lives no longer than one connection to the server.

    ``on_message`` gets every message after HOLDER_HELLO, from inside the read callback;
    ``on_closed`` is called once when the conversation ends in any way but :meth:`close`.
    """

    def __init__(
        self,
        session_id: str,
        on_message: Callable[[FromHolder], None],
        on_closed: Callable[[], None],
    ) -> None:
        self.session_id = session_id
        # The process id of the holder, if the fork server told it.
        self.pid: int | None = None
        self.capabilities: frozenset[str] = frozenset()
        self._on_message = on_message
        self._on_closed = on_closed
        self._unpacker = Unpacker()
        self._transport: asyncio.Transport | None = None
        self._hello: asyncio.Future[SessionSummary] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(
        cls,
        directory: SessionDirectory,
        on_message: Callable[[FromHolder], None] = ignore,
        on_closed: Callable[[], None] = nothing,
        *,
        holder_pid: int | None = None,
    ) -> tuple[Self, SessionSummary]:
        """Connect to the holder of ``directory`` and wait for its HOLDER_HELLO.

        ``holder_pid``: the holder, if the caller knows it. No other process is believed then.
        Returns the conversation and the summary of HOLDER_HELLO. Raises HolderUnreachable.
        """
        session_id = directory.session_id
        connected = None
        try:
            connected = directory.connect()
            if not is_same_user(connected):
                raise PermissionError(errno.EPERM, "its socket belongs to another user")
            if holder_pid is not None and peer_pid(connected) not in {holder_pid, None}:
                raise PermissionError(errno.EPERM, "its socket belongs to another process")
            client = await cls.over(connected, session_id, on_message, on_closed)
            return client, await client.hello_within(HELLO_SECONDS)
        except OSError as error:  # also TimeoutError
            if connected is not None:
                connected.close()
            raise HolderUnreachable(session_id, error.strerror or str(error)) from None

    @classmethod
    async def over(
        cls,
        connected: socket.socket,
        session_id: str,
        on_message: Callable[[FromHolder], None] = ignore,
        on_closed: Callable[[], None] = nothing,
    ) -> Self:
        """Begin a conversation over a connected socket. Raises OSError."""
        _, client = await asyncio.get_running_loop().create_unix_connection(
            lambda: cls(session_id, on_message, on_closed), sock=connected
        )
        return client

    async def hello_within(self, seconds: float) -> SessionSummary:
        """Wait for HOLDER_HELLO and return its summary.

        Raises OSError, and ends the conversation, if the hello does not come: the error that the
        holder told in its place, or that of the connection.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._hello
        except TimeoutError:
            self.close()
            raise TimeoutError(errno.ETIMEDOUT, "no answer") from None
        except (OSError, asyncio.CancelledError):
            # The caller never gets this conversation, and a holder can have only one.
            self.close()
            raise

    @property
    def is_open(self) -> bool:
        """True while messages still reach the holder."""
        return self._transport is not None

    def send(self, *messages: Message) -> None:
        """Send messages in one write, so that the holder wakes up once.

        They are dropped if the conversation is over.
        """
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(pack(encode(message)) for message in messages))

    def close(self) -> None:
        """End the conversation; the holder keeps its program. ``on_closed`` is not called."""
        self._on_closed = nothing
        self._on_message = ignore
        if self._transport is not None:
            self._transport.abort()

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the connected socket."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Decode and forward every complete frame."""
        try:
            for frame in self._unpacker.feed(data):
                self._receive(decode_from_holder.decode(frame))
        except ProtocolError as error:
            logger.error("the holder of session %s broke the protocol: %s", self.session_id, error)
            self._abort()
        except Exception:
            # An error about one session's message must not end the other sessions.
            logger.exception(
                "a message of the holder of session %s could not be handled", self.session_id
            )
            self._abort()

    def connection_lost(self, _error: Exception | None) -> None:
        """Fail the hello if it has not come; otherwise call ``on_closed``."""
        self._transport = None
        if not self._hello.done():
            self._fail(ConnectionResetError(errno.ECONNRESET, "closed before its hello"))
        else:
            self._on_closed()

    def _receive(self, message: FromHolder) -> None:
        if self._hello.done():
            self._on_message(message)
        elif isinstance(message, HolderHello) and message.summary.session_id == self.session_id:
            self.capabilities = frozenset(message.capabilities)
            self._hello.set_result(message.summary)
        else:
            if isinstance(message, Error):
                self._fail(error_named(message.code))
            self._abort()

    def _fail(self, error: OSError) -> None:
        self._hello.set_exception(error)
        # Nobody may be waiting for the hello any more.
        self._hello.exception()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
