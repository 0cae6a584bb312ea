"""The echo of a terminal: what a person who types feels, without a program or a session."""

import asyncio
import os
from contextlib import suppress
from typing import Final

ECHO_SECONDS: Final = 5.0
"""A host whose terminal has not echoed for so long has no echo."""


async def is_echoed() -> bool:
    """Open a terminal, type a line end into it, and wait for what it echoes."""
    try:
        master, terminal = os.openpty()
    except OSError:
        return False
    loop, came = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(master, came.set)
        os.write(master, b"\n")
        with suppress(TimeoutError):
            async with asyncio.timeout(ECHO_SECONDS):
                await came.wait()
        return came.is_set()
    except OSError:
        return False
    finally:
        loop.remove_reader(master)
        os.close(master)
        os.close(terminal)
