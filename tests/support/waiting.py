"""The only ways in which a test waits: for a condition, with a deadline and a description."""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.01
_NEVER = threading.Event()


class ConditionNotMetError(AssertionError):
    """The deadline passed before the condition held.

    ``what`` says what the test waited for, ``last`` is the last value of the condition.
    """

    def __init__(self, what: str, seconds: float, last: object) -> None:
        self.what, self.seconds, self.last = what, seconds, last
        super().__init__(f"waited {seconds} s for {what}; last seen: {last!r}")


def wait_until(predicate: Callable[[], T], seconds: float, what: str) -> T:
    """Return the first truthy value of ``predicate``, called again and again for ``seconds``.

    Raises ConditionNotMetError.
    """
    deadline = time.monotonic() + seconds
    while not (value := predicate()):
        if time.monotonic() > deadline:
            raise ConditionNotMetError(what, seconds, value)
        _NEVER.wait(_POLL_SECONDS)
    return value


async def await_until(predicate: Callable[[], object], seconds: float, what: str) -> Any:
    """``wait_until`` for coroutines: the event loop goes on meanwhile.

    ``predicate`` may be a coroutine function.
    """
    deadline = time.monotonic() + seconds
    while True:
        outcome = predicate()
        value = await outcome if inspect.isawaitable(outcome) else outcome
        if value:
            return value
        if time.monotonic() > deadline:
            raise ConditionNotMetError(what, seconds, value)
        await asyncio.sleep(_POLL_SECONDS)
