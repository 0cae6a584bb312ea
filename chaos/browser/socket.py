"""The WebSocket of a page, as far as a page needs it (RFC 6455), on a connection of its own."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from chaos.browser.pages import Browser

Json = dict[str, object]

_PATH: Final = "/ws/console/"
_CONTINUED, _TEXT, _CLOSE, _PING, _PONG = 0, 1, 8, 9, 10
_OPEN_SECONDS: Final = 45.0
# A server asks after a silent connection every 20 s, so a longer silence means that it is dead.
_SILENT_SECONDS: Final = 60.0


class BrokenError(Exception):
    """The connection is gone, or was refused.

    ``status`` is the answer to the handshake, 0 if there was none.
    """

    def __init__(self, why: str, status: int = 0) -> None:
        self.status = status
        super().__init__(why)


class Socket:
    """One open connection. ``receive`` and ``send`` raise BrokenError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, type_: str, **fields: object) -> None:
        """Send a message to the server."""
        await self._put(_TEXT, json.dumps({"type": type_, **fields}).encode())

    async def receive(self) -> Json:
        """The next message. A frame with output has the type ``output``, and its bytes as data."""
        try:
            async with asyncio.timeout(_SILENT_SECONDS):
                kind, data = await self._message()
        except (OSError, EOFError, TimeoutError) as error:
            raise BrokenError(type(error).__name__) from error
        if kind == _TEXT:
            told: Json = json.loads(data)
            return told
        stream = "stderr" if data[0] else "stdout"
        offset = int.from_bytes(data[1:9])
        return {"type": "output", "stream": stream, "offset": offset, "data": data[9:]}

    async def _message(self) -> tuple[int, bytes]:
        """A whole message: the kind of its first frame, and the data of all."""
        kind, whole = _CONTINUED, b""
        while True:
            is_last, frame, data = await self._frame()
            if frame == _CLOSE:
                raise EOFError
            if frame == _PING:
                await self._put(_PONG, data)
            elif frame != _PONG:
                kind, whole = frame or kind, whole + data
                if is_last:
                    return kind, whole

    async def _frame(self) -> tuple[bool, int, bytes]:
        first, size = await self._reader.readexactly(2)
        if size == 126:
            size = int.from_bytes(await self._reader.readexactly(2))
        elif size == 127:
            size = int.from_bytes(await self._reader.readexactly(8))
        return bool(first & 0x80), first & 0x0F, await self._reader.readexactly(size)

    async def _put(self, kind: int, data: bytes) -> None:
        size, mask = len(data), os.urandom(4)
        if size < 126:
            head = bytes([0x80 | kind, 0x80 | size])
        elif size < 1 << 16:
            head = bytes([0x80 | kind, 0x80 | 126]) + size.to_bytes(2)
        else:
            head = bytes([0x80 | kind, 0x80 | 127]) + size.to_bytes(8)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
        try:
            self._writer.write(head + mask + masked)
            async with asyncio.timeout(_SILENT_SECONDS):
                await self._writer.drain()
        except (OSError, TimeoutError) as error:
            raise BrokenError(type(error).__name__) from error


@asynccontextmanager
async def opened(browser: Browser) -> AsyncIterator[Socket]:
    """Open a connection with the person's login. Raises BrokenError if it is refused."""
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", browser.port)
    except (OSError, TimeoutError) as error:
        raise BrokenError(type(error).__name__) from error
    try:
        await _shake_hands(reader, writer, browser)
        yield Socket(reader, writer)
    finally:
        writer.transport.abort()


async def _shake_hands(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, browser: Browser
) -> None:
    writer.write(
        f"GET {_PATH} HTTP/1.1\r\nHost: 127.0.0.1:{browser.port}\r\n"
        f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
        f"Origin: {browser.origin}\r\nCookie: {browser.cookie}\r\n\r\n".encode()
    )
    try:
        async with asyncio.timeout(_OPEN_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
    except (OSError, EOFError, ValueError, TimeoutError) as error:
        raise BrokenError(type(error).__name__) from error
    if status != 101:
        raise BrokenError(f"HTTP {status}", status)
