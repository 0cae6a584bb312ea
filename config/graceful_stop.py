"""SIGTERM: first come to an end in good order, then let the server that runs us stop.

Daphne would cancel everything at once, without a close frame and without an answer to anybody; uvicorn would close its sockets. Both
install their own handler before the first connection; ours goes in front of it then, and calls it when nothing is left to be done or
the time is over. A second SIGTERM stops at once.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from projects import draining
from projects.conf import conf

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.05

_server_handler: Callable[[int, FrameType | None], Any] | None = None
_task: asyncio.Task[None] | None = None
_calls = 0


def ensure_installed() -> None:
    """Goes before the handler of the server we run in, if it has one and this is its main thread."""
    global _server_handler  # noqa: PLW0603 - a process has one
    if _server_handler is not None:
        return
    handler = signal.getsignal(signal.SIGTERM)
    if not callable(handler):
        # No server: a test, or another program that mounted us. Stopping is its own business.
        return
    loop = asyncio.get_running_loop()
    try:
        signal.signal(signal.SIGTERM, lambda number, frame: _on_signal(loop, number, frame))
    except ValueError:
        return
    _server_handler = handler


@contextmanager
def in_call() -> Iterator[None]:
    """Around each HTTP request: the stop waits for its answer."""
    global _calls  # noqa: PLW0603 - a counter of the process
    _calls += 1
    try:
        yield
    finally:
        _calls -= 1


def _on_signal(loop: asyncio.AbstractEventLoop, number: int, frame: FrameType | None) -> None:
    if draining.has_begun():
        _stop_server(number, frame)
    else:
        loop.call_soon_threadsafe(_begin, number)


def _begin(number: int) -> None:
    global _task  # noqa: PLW0603 - a task needs a reference that lasts
    if _task is None:
        draining.begin(conf.stop_seconds)
        _task = asyncio.create_task(_come_to_an_end(number), name="graceful stop")


async def _come_to_an_end(number: int) -> None:
    began = time.monotonic()
    logger.info("stopping: %d controllers to be sent elsewhere, %d calls to be answered", draining.open_connections(), _calls)
    # Two counts, and a deadline: looking costs nothing.
    while (draining.open_connections() or _calls) and time.monotonic() - began < conf.stop_seconds:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_SECONDS)
    # The last answers and close frames are on their way out of this process.
    await asyncio.sleep(_LOOK_SECONDS)
    logger.info("stopped after %.2f s: %d controllers and %d calls left", time.monotonic() - began, draining.open_connections(), _calls)
    _stop_server(number, None)


def _stop_server(number: int, frame: FrameType | None) -> None:
    if _server_handler is not None:
        _server_handler(number, frame)
