"""Waiting for a session to get somewhere: look, wait for its doorbell, look again. Waiting holds neither a thread nor a connection.

Whoever set ``REPORT`` is told once a second how far the session is. Only then does a report cost anything.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeVar
from uuid import UUID

from django.db import connection

from projects import draining, metrics
from projects.account_errors import RateLimited
from projects.authentication import Caller, check_caller
from projects.conf import conf
from projects.database import at_length, in_database
from projects.dispatch import Doorbell, as_parameter

T = TypeVar("T")

# A little less than the safety net: a session that is silent is reported on at every one of its looks.
REPORT_SECONDS: Final = 0.9
# A call that waits looks this often whether its token is still good.
CHECK_SECONDS: Final = 1.5
_HOW_FAR: Final = "SELECT state, stdout_next_offset + stderr_next_offset FROM projects_commandsession WHERE id = %s"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session is that a call waits for: ``state`` in the words of the rows, and all output so far."""

    waited_seconds: float
    wait_seconds: float
    state: str
    output_bytes: int


REPORT: ContextVar[Callable[[Progress], Awaitable[None]] | None] = ContextVar("REPORT", default=None)
"""Set by a face whose caller asked for progress; for the calls made in its context."""
# Calls that are being answered by this process, by token.
_calls: Counter[UUID | None] = Counter()
_CALLER: ContextVar[Caller | None] = ContextVar("_CALLER", default=None)


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Waits in the block are those of ``caller``, and end with its token. Raises RateLimited if too many of its calls are here already."""
    if _calls[caller.token_id] >= conf.max_calls_per_token and caller.token_id is not None:
        raise RateLimited("calls at the same time", 1.0)
    _calls[caller.token_id] += 1
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)
        _calls[caller.token_id] -= 1
        if not _calls[caller.token_id]:
            del _calls[caller.token_id]


async def watch(bell: Doorbell, look: Callable[[bool], T | None], wait_seconds: float, *, look_first: bool, is_long: bool = False) -> T:
    """What ``look`` finds, as soon as it finds something; it runs in a database thread and is told when it looks for the last time.

    ``is_long``: looking may take long. Raises Unauthenticated when the token of whoever is ``calling`` was revoked meanwhile.
    ``look_first``: there may be something already; otherwise the host was only just rung. The last look must find something, and
    a process that is being stopped takes it sooner.
    """
    loop = asyncio.get_running_loop()
    began = reported = checked = loop.time()
    caller = _CALLER.get()
    deadline = began + wait_seconds
    report = REPORT.get() if bell.session_id is not None else None
    hop = at_length if is_long else in_database
    is_rung = look_first or await bell.wait(wait_seconds)
    while True:
        remaining = min(deadline - loop.time(), draining.seconds_left_to_wait())
        found = await hop(look, remaining <= 0)
        if found is not None:
            if not is_rung and remaining > 0:
                metrics.LOST_SESSION.inc()
            return found
        if caller is not None and loop.time() - checked >= CHECK_SECONDS:
            checked = loop.time()
            await in_database(check_caller, caller)
        if report is not None and loop.time() - reported >= REPORT_SECONDS:
            reported = loop.time()
            await report(Progress(reported - began, wait_seconds, *await in_database(_how_far, str(bell.session_id))))
        is_rung = await bell.wait(min(deadline - loop.time(), draining.seconds_left_to_wait()))


def _how_far(session_id: str) -> tuple[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(_HOW_FAR, [as_parameter(UUID(session_id))])
        row = cursor.fetchone()
    return (str(row[0]), int(row[1])) if row is not None else ("", 0)


def clamped(wait_seconds: float) -> float:
    """A wait within what a call may take."""
    return max(0.0, min(wait_seconds, conf.max_wait_seconds))
