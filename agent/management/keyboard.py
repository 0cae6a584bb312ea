"""Questions to the person at the terminal, withdrawn when they are answered elsewhere."""

import asyncio
import os
import sys
import termios
from collections.abc import Awaitable, Callable

LOOK_SECONDS = 0.25


async def answered(question: str, is_settled: Callable[[], Awaitable[bool]]) -> str | None:
    """Ask on the terminal; returns the typed line, or None once ``is_settled`` says so.

    Other tasks of the event loop run while it waits. Raises EOFError at the end of input.
    """
    loop, descriptor = asyncio.get_running_loop(), sys.stdin.fileno()
    typed: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        # A terminal delivers whole lines, so one read is enough.
        loop.remove_reader(descriptor)
        if not typed.done():
            typed.set_result(os.read(descriptor, 4096))

    sys.stdout.write(question)
    sys.stdout.flush()
    loop.add_reader(descriptor, read)
    try:
        while not typed.done():
            await asyncio.wait([typed], timeout=LOOK_SECONDS)
            if not typed.done() and await is_settled():
                # Drop a half-typed line: it must not become the answer to the next question.
                termios.tcflush(descriptor, termios.TCIFLUSH)
                sys.stdout.write("\n")
                return None
    finally:
        loop.remove_reader(descriptor)
    if not (line := typed.result()):
        raise EOFError
    return line.decode(errors="replace").strip()
