"""A TCP proxy of our own between two parties, which cuts, stalls, slows and loses on command."""

import asyncio
import random
import socket
import struct
from contextlib import suppress
from typing import Final

_BLOCK_BYTES: Final = 65536
_RESET: Final = struct.pack("ii", 1, 0)


class _Pair:
    """One connection through the proxy: the near and the far end."""

    def __init__(self, *ends: asyncio.StreamWriter) -> None:
        self.ends = ends
        self.is_dead_silent = False

    def reset(self) -> None:
        for writer in self.ends:
            sock = writer.get_extra_info("socket")
            if sock is not None:
                with suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()


class Link:
    """Forwards connections at ``port`` to the first of ``targets``, in turn, that accepts one.

    ``bytes_per_second`` limits each direction. ``lost_replies`` is the share of connections that
    are reset when their first answer comes, after the far end has done what it was asked.
    """

    def __init__(self, port: int, targets: list[int]) -> None:
        self.port = port
        self.bytes_per_second: float | None = None
        self.lost_replies = 0.0
        self._targets = targets
        self._turn = 0
        self._pairs: set[_Pair] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen, and forward from now on."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)

    async def close(self) -> None:
        """Reset everything, and listen no more."""
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection that exists now."""
        for pair in list(self._pairs):
            pair.reset()

    def hold(self) -> None:
        """Let nothing pass, like a pulled cable: nobody is told."""
        self._flowing.clear()

    def resume(self) -> None:
        """Let everything that was held pass."""
        self._flowing.set()

    def forget(self) -> None:
        """Swallow what the present connections carry, for good; new ones are served."""
        for pair in self._pairs:
            pair.is_dead_silent = True

    def remember(self) -> None:
        """Reset the connections that swallow everything."""
        for pair in [pair for pair in self._pairs if pair.is_dead_silent]:
            pair.reset()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Only ``close`` cancels. The streams of asyncio would log that as an error.
            with suppress(asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        found = await self._next_target()
        if found is None:
            _Pair(writer).reset()
            return
        far_reader, far_writer = found
        pair = _Pair(writer, far_writer)
        self._pairs.add(pair)
        is_lost = random.random() < self.lost_replies
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(pair, reader, far_writer, is_lost=False))
                both.create_task(self._pump(pair, far_reader, writer, is_lost=is_lost))
        finally:
            self._pairs.discard(pair)
            far_writer.close()

    async def _next_target(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self._targets:
            self._turn += 1
            with suppress(OSError):
                port = self._targets[self._turn % len(self._targets)]
                return await asyncio.open_connection("127.0.0.1", port)
        return None

    async def _pump(
        self,
        pair: _Pair,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        is_lost: bool,
    ) -> None:
        with suppress(OSError):
            while block := await reader.read(_BLOCK_BYTES):
                await self._flowing.wait()
                if is_lost:
                    pair.reset()
                    return
                if self.bytes_per_second:
                    await asyncio.sleep(len(block) / self.bytes_per_second)
                if not pair.is_dead_silent:
                    writer.write(block)
                    await writer.drain()
        if not pair.is_dead_silent:
            writer.close()
