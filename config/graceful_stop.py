"""SIGTERM: answer waiting calls and send controllers elsewhere, then let the ASGI server stop.

On its own, Daphne would cancel everything at once, without answers and close frames; uvicorn would
close its sockets. Both install a signal handler before the first connection. Ours replaces it then,
and calls it when nothing is left to do or the time is over. A second SIGTERM stops at once.

When the time is over, the process ends, even if its threads still wait for something. A transaction
that is not committed by then was acknowledged to nobody, and the next process finds the database in
the state that any crash leaves.
"""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from projects.conf import conf
from projects.process import draining

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.05
SHORTEST_SECONDS: Final = 1.0
"""The process lives this long after SIGTERM at least, so that the ASGI server can stop."""
# The part of the time that is left to the ASGI server, to close its connections.
_SERVERS_SHARE: Final = 0.2


@dataclass
class _Process:
    """The open calls of this process, and the handler that stops its ASGI server."""

    server_handler: Callable[[int, FrameType | None], Any] | None = None
    task: asyncio.Task[None] | None = None
    """The running stop. asyncio keeps only a weak reference to a task."""
    calls: int = 0


_process = _Process()


def ensure_installed() -> bool:
    """Replace the ASGI server's SIGTERM handler, if there is one and this is the main thread.

    Returns True if it is replaced: then this process is a server.
    """
    if _process.server_handler is not None:
        return True
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler):
        # No ASGI server: a test, or a program that mounts the application and stops it itself.
        return False
    loop = asyncio.get_running_loop()
    try:
        signal.signal(signal.SIGTERM, lambda number, frame: _on_signal(loop, number, frame))
    except ValueError:
        return False
    _process.server_handler = handler
    return True


@contextmanager
def in_call() -> Iterator[None]:
    """Count an HTTP request while it is inside: the stop waits for its answer."""
    _process.calls += 1
    try:
        yield
    finally:
        _process.calls -= 1


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, frame: FrameType | None) -> None:
    if draining.has_begun():
        _stop_server(number, frame)
    else:
        # In a daemon thread: a blocked event loop cannot delay it, nor can the threads that the
        # interpreter joins at exit.
        threading.Thread(target=_end_in_time, name="last of a graceful stop", daemon=True).start()
        loop.call_soon_threadsafe(_begin, number)


def _end_in_time() -> None:
    threading.Event().wait(max(SHORTEST_SECONDS, conf.stop_seconds))
    logger.warning("stopped with work left: the time is over")
    logging.shutdown()
    os._exit(0)


def _begin(number: int) -> None:
    if _process.task is None:
        draining.begin(conf.stop_seconds)
        _process.task = asyncio.create_task(_come_to_an_end(number), name="graceful stop")


async def _come_to_an_end(number: int) -> None:
    began = time.monotonic()
    controllers = draining.open_connections()
    logger.info(
        "stopping: %d controllers to be sent elsewhere, %d calls to be answered",
        controllers,
        _process.calls,
    )
    # Polling two counts costs nothing.
    longest = conf.stop_seconds * (1 - _SERVERS_SHARE)
    while (draining.open_connections() or _process.calls) and time.monotonic() - began < longest:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    # The last answers and close frames may still be in the buffers of this process.
    await asyncio.sleep(_LOOK_SECONDS)
    logger.info(
        "stopped after %.2f s: %d controllers and %d calls left",
        time.monotonic() - began,
        draining.open_connections(),
        _process.calls,
    )
    _stop_server(number, None)


def _stop_server(number: int, frame: FrameType | None) -> None:
    if _process.server_handler is not None:
        _process.server_handler(number, frame)
