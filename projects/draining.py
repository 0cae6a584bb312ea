"""A process that is being stopped on purpose: who has to know, and how long it may take.

``begin`` is called once, by whoever was told to stop the process. From then on no new call is taken, calls that wait are answered with
what there is, and each controller's connection is closed at a moment of its own, so that the hosts do not all return at once.
"""

import math
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

ANSWER_SECONDS: Final = 2.0
"""How long calls that wait may go on waiting."""
CLOSED_PER_SECOND: Final = 200.0
"""Controllers sent elsewhere in a second: a HELLO costs the server that gets it a few milliseconds."""


class Event(Protocol):
    """What is set when the stop begins; an ``asyncio.Event`` of the listener's own loop."""

    def set(self) -> None:
        """It has begun."""


_connections: set[Event] = set()
_began_at: float | None = None
_spread_seconds = 0.0


def begin(stop_seconds: float) -> None:
    """On the event loop's thread. All connections are to be closed within half of ``stop_seconds``; more than once changes nothing."""
    global _began_at, _spread_seconds  # noqa: PLW0603 - a process stops once
    if _began_at is None:
        _began_at = time.monotonic()
        _spread_seconds = min(stop_seconds / 2, len(_connections) / CLOSED_PER_SECOND)
        for event in tuple(_connections):
            event.set()


def has_begun() -> bool:
    """Whether the process is being stopped."""
    return _began_at is not None


def seconds_left_to_wait() -> float:
    """How long a call may still wait; endless while nobody stops the process."""
    return math.inf if _began_at is None else max(0.0, _began_at + ANSWER_SECONDS - time.monotonic())


def delay() -> float:
    """When to close one connection, in seconds from the beginning."""
    return random.uniform(0.0, _spread_seconds)  # noqa: S311 - jitter, not a secret


@contextmanager
def announced_to(event: Event) -> Iterator[None]:
    """``event`` is set when the stop begins; inside, the connection counts as one that is to be closed."""
    _connections.add(event)
    try:
        if has_begun():
            event.set()
        yield
    finally:
        _connections.discard(event)


def open_connections() -> int:
    """Connections that are not closed yet."""
    return len(_connections)


def reset() -> None:
    """As in a fresh process."""
    global _began_at, _spread_seconds
    _began_at, _spread_seconds = None, 0.0
