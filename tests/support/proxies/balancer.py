"""A balancing proxy on the loopback.

Each HTTP request and each WebSocket goes to the next server process that accepts connections.
"""

import asyncio
import re
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")

_BLOCK_BYTES: Final = 65536
_HEAD_BYTES: Final = 65536
_UPGRADE: Final = re.compile(rb"^upgrade:\s*websocket\s*$", re.IGNORECASE | re.MULTILINE)
_CONNECTION: Final = re.compile(rb"^connection:[^\r\n]*\r\n", re.IGNORECASE | re.MULTILINE)
_UNAVAILABLE: Final = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Balancer:
    """Listens on ``port`` and forwards to ``targets`` in turn until it is closed.

    Every request is sent with ``Connection: close``, so the next one can go to another server.
    ``sockets`` are the ports that hold a WebSocket now, in the order in which they were opened. Any
    thread may read them.
    """

    def __init__(self, port: int, targets: list[int]) -> None:
        self.port = port
        self.sockets: list[int] = []
        self._targets = targets
        self._turn = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer", daemon=True)
        self._thread.start()
        self._server = self._call(
            asyncio.start_server(self._accept, "127.0.0.1", port, limit=_HEAD_BYTES)
        )

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # asyncio itself keeps no reference to the task that serves a connection.
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                head = await reader.readuntil(b"\r\n\r\n")
                found = await self._next_server()
                if found is None:
                    writer.write(_UNAVAILABLE)
                    await writer.drain()
                else:
                    await self._forward(head, (reader, writer), *found)
        finally:
            writer.close()

    async def _next_server(self) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter] | None:
        # One step for each connection: another one is served while this one waits, and this one
        # must still try every server.
        self._turn += 1
        first = self._turn % len(self._targets)
        for port in (*self._targets[first:], *self._targets[:first]):
            with suppress(OSError):
                return port, *await asyncio.open_connection("127.0.0.1", port)
        return None

    async def _forward(
        self,
        head: bytes,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        is_socket = _UPGRADE.search(head.replace(b"\r\n", b"\n")) is not None
        if is_socket:
            self.sockets.append(port)
        else:
            head = _CONNECTION.sub(b"", head).replace(b"\r\n", b"\r\nConnection: close\r\n", 1)
        try:
            writer.write(head)
            inbound = asyncio.create_task(_pump(near[0], writer))
            try:
                # The request is over with its answer, even if the caller still sends something.
                await _pump(reader, near[1])
            finally:
                inbound.cancel()
                await asyncio.gather(inbound, return_exceptions=True)
        finally:
            writer.close()
            if is_socket:
                self.sockets.remove(port)

    def close(self) -> None:
        """Close all connections, and end the thread."""

        async def shut() -> None:
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Closed transports release their sockets in the next iterations of the loop.
            for _ in range(3):
                await asyncio.sleep(0)

        self._call(shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while block := await reader.read(_BLOCK_BYTES):
            writer.write(block)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
