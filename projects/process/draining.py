"""The planned stop of a process: when it began, and how long calls and connections may take.

``config.graceful_stop`` calls ``begin`` on SIGTERM. From then on new calls are refused, and waiting
calls are answered with what there is. Each controller's connection is closed at a random moment, so
that the hosts do not all reconnect at once.
"""

import asyncio
import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

ANSWER_SECONDS: Final = 2.0
"""Calls may wait this long after the stop began."""
CLOSED_PER_SECOND: Final = 200.0
"""Connections closed per second, at most: the HELLO of each host costs another server some ms."""

_connections: set[asyncio.Event] = set()


@dataclass
class _Stop:
    """The stop of this process, of which there is one at most."""

    began_at: float | None = None
    spread_seconds: float = 0.0


_stop = _Stop()


def begin(stop_seconds: float) -> None:
    """Begin the stop; a second call changes nothing. Call this on the event loop's thread.

    All connections are to be closed within half of ``stop_seconds``.
    """
    if _stop.began_at is None:
        _stop.began_at = time.monotonic()
        _stop.spread_seconds = min(stop_seconds / 2, len(_connections) / CLOSED_PER_SECOND)
        for event in tuple(_connections):
            event.set()


def has_begun() -> bool:
    """True from the call of ``begin`` on."""
    return _stop.began_at is not None


def seconds_left_to_wait() -> float:
    """Seconds that a call may still wait; infinite while the process is not stopping."""
    if _stop.began_at is None:
        return math.inf
    return max(0.0, _stop.began_at + ANSWER_SECONDS - time.monotonic())


def delay() -> float:
    """Seconds from the beginning of the stop until one connection is closed, at random."""
    return random.SystemRandom().uniform(0.0, _stop.spread_seconds)


@contextmanager
def announced_to(event: asyncio.Event) -> Iterator[None]:
    """Inside, count one open connection, and set ``event`` when the stop begins."""
    _connections.add(event)
    try:
        if has_begun():
            event.set()
        yield
    finally:
        _connections.discard(event)


def open_connections() -> int:
    """The number of connections that are not closed yet."""
    return len(_connections)


def reset() -> None:
    """Forget the stop, for tests that begin one."""
    _stop.began_at, _stop.spread_seconds = None, 0.0
