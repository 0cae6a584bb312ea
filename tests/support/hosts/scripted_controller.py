"""A daemon whose frames a test chooses. It speaks the real codec to a real server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from controller_client.protocol import codec
from controller_client.protocol.messages import (
    Error,
    FromServer,
    Message,
    Ping,
    SessionSummary,
    Welcome,
)
from tests.support.rows import make_hello

M = TypeVar("M", bound=Message)

DEADLINE_SECONDS = 90.0


class ScriptedController:
    """One connection of the daemon.

    ``errors`` collects the server's ERROR frames. PINGs are skipped unless a test asks for them.
    """

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.epoch = 0
        self.errors: list[Error] = []

    async def send(self, *messages: Message) -> None:
        for message in messages:
            await self._socket.send(codec.encode(message).decode())

    async def send_raw(self, frame: str | bytes) -> None:
        """Send a frame that need not be a message."""
        await self._socket.send(frame)

    async def hello(self, *sessions: SessionSummary, **fields: Any) -> Welcome:
        """Send HELLO, and return the server's WELCOME."""
        await self.send(make_hello(*sessions, **fields))
        welcome = await self.receive(Welcome)
        self.epoch = welcome.epoch
        return welcome

    async def receive(self, kind: type[M]) -> M:
        """The next frame, which must be a ``kind``; PINGs in front of it are skipped."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                message: FromServer = codec.decode_from_server.decode(await self._socket.recv())
                if isinstance(message, kind):
                    return message
                if isinstance(message, Error):
                    self.errors.append(message)
                assert isinstance(message, (Ping, Error)), (
                    f"expected {kind.__name__}, got {message!r}"
                )

    async def closed(self) -> int | None:
        """Wait for the server's close, and return its code.

        ERROR frames before the close are collected in ``errors``.
        """
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                while True:
                    message = codec.decode_from_server.decode(await self._socket.recv())
                    if isinstance(message, Error):
                        self.errors.append(message)
            except ConnectionClosed:
                return self._socket.close_code

    def hang_up(self) -> None:
        """Reset the connection without a close frame."""
        self._socket.transport.abort()


@asynccontextmanager
async def scripted_controller(
    port: int, credential: str, **options: Any
) -> AsyncIterator[ScriptedController]:
    """An accepted connection on which nothing has been said yet."""
    headers = {"Authorization": f"Bearer {credential}"}
    async with connect(
        f"ws://127.0.0.1:{port}/ws/controller/",
        additional_headers=headers,
        compression=None,
        **options,
    ) as socket:
        yield ScriptedController(socket)
