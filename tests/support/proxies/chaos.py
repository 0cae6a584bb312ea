"""A TCP proxy on the loopback that misbehaves on command.

It can reset connections, pass nothing, delay blocks, and cut blocks into single bytes.
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

T = TypeVar("T")

_RESET = struct.pack("ii", 1, 0)
_BLOCK_BYTES = 65536


class ChaosProxy:
    """Forwards connections to ``target_port``. Every method may be called from any thread.

    ``hold`` acts like a pulled cable: nothing passes and nobody is told. ``resume`` lets the
    connections that still exist go on. ``cut`` resets all connections. ``slice_bytes`` limits the
    size of a block, ``delay_seconds`` delays each block.
    """

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.delay_seconds = 0.0
        self.slice_bytes = _BLOCK_BYTES
        self.accepted = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._flowing: asyncio.Event
        self._server: asyncio.Server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="chaos-proxy", daemon=True
        )
        self._thread.start()
        self.port = self._call(self._open())

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _set_flowing(self, *, is_flowing: bool) -> None:
        if is_flowing:
            self._flowing.set()
        else:
            self._flowing.clear()

    async def _open(self) -> int:
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        try:
            await self._flowing.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.close()
            return
        self._writers.add(far_writer)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._pump(reader, far_writer))
            both.create_task(self._pump(far_reader, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while block := await reader.read(_BLOCK_BYTES):
                for start in range(0, len(block), self.slice_bytes):
                    await self._flowing.wait()
                    if self.delay_seconds:
                        await asyncio.sleep(self.delay_seconds)
                    writer.write(block[start : start + self.slice_bytes])
                    await writer.drain()
        self._writers.discard(writer)
        writer.close()

    def cut(self) -> None:
        """Reset every connection that exists now."""

        async def reset() -> None:
            for writer in self._writers:
                sock = writer.get_extra_info("socket")
                if sock is not None:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()
            self._writers.clear()

        self._call(reset())

    def hold(self) -> None:
        """Let nothing pass; connections stay open."""
        self._call(self._set_flowing(is_flowing=False))

    def resume(self) -> None:
        """Let everything that was held pass."""
        self._call(self._set_flowing(is_flowing=True))

    def close(self) -> None:
        """Close all connections, and end the thread."""

        async def shut() -> None:
            self._server.close()
            for writer in self._writers:
                writer.transport.abort()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._call(shut())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


@contextmanager
def chaos_proxy(target_port: int) -> Iterator[ChaosProxy]:
    """A proxy that is closed after the block."""
    proxy = ChaosProxy(target_port)
    try:
        yield proxy
    finally:
        proxy.close()
