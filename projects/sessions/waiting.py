"""Wait for a session to get somewhere: look, wait for its doorbell, look again.

Waiting holds neither a thread nor a database connection. If ``REPORT`` is set, it is called once a
second with the progress of the session. Otherwise no progress is read.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from projects.accounts.authentication import Caller, check_caller
from projects.conf import conf
from projects.process import draining, metrics
from projects.sessions.transactions.acting import Acted
from projects.storage.access import at_any_length, at_length, in_database, in_shared_transaction
from projects.storage.columns import as_parameter, as_uuid
from projects.storage.rows import fetch_row
from projects.wakeups.doorbells import Doorbell, ring_controller, session_doorbell
from projects.wakeups.looks import Offer

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Cost = Literal["short", "long", "open"]
"""How long one look may take; ``open``: the caller chooses, by an expression or a screen."""

# A little less than the time between two looks, so that a silent session is reported on at each.
REPORT_SECONDS: Final = 0.9
# A call that waits checks its token this often.
CHECK_SECONDS: Final = 1.5
_COMMITTED: Final = """
SELECT state, stdout_next_offset + stderr_next_offset FROM projects_commandsession WHERE id = %s
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a session that a call waits for: its state, and all of its output so far.

    ``state`` is the one of the row, such as ``RUNNING``.
    """

    waited_seconds: float
    wait_seconds: float
    state: str
    output_bytes: int


class _Committed(NamedTuple):
    state: str
    output_bytes: int


class Look(Protocol[T_co]):
    """A look at the database. It returns None while the thing that is waited for is not there."""

    def __call__(self, is_last: bool, /) -> T_co | None:
        """Look once. The last look must find something, or raise."""


REPORT: ContextVar[Callable[[Progress], Awaitable[None]] | None] = ContextVar(
    "REPORT", default=None
)
"""Set by a face whose caller asked for progress. It holds for all calls in the same context."""
_CALLER: ContextVar[Caller | None] = ContextVar("_CALLER", default=None)


@contextmanager
def calling(caller: Caller) -> Iterator[None]:
    """Let waits in the block end when the token of ``caller`` is revoked or expires."""
    token = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(token)


@asynccontextmanager
async def rung(acted: Acted) -> AsyncIterator[Doorbell]:
    """Ring the controller of an action, and hear the doorbell of its session.

    The session's doorbell is heard first, so that no answer of the controller is missed.
    """
    async with session_doorbell(acted.session_id) as bell:
        if acted.to_ring is not None:
            await ring_controller(acted.to_ring)
        yield bell


async def watch(
    bell: Doorbell,
    look: Look[T],
    wait_seconds: float,
    *,
    look_first: bool,
    cost: Cost = "short",
    is_offered: bool = True,
) -> T:
    """Wait until ``look`` finds something, and return that.

    ``look`` runs in a database thread: at once if ``look_first``, otherwise after the first
    doorbell, and then after each doorbell. ``cost`` says how long looking may take. A look that
    ``is_offered`` and short may instead run in the transaction that stores news of the session
    (``projects.wakeups.looks``), so it writes at most to the session's own row. The last look is
    after ``wait_seconds``, or sooner if this process is being stopped.

    Raises Unauthenticated if the token of the caller (``calling``) was revoked meanwhile.
    """
    loop = asyncio.get_running_loop()
    began = reported = checked = loop.time()
    caller = _CALLER.get()
    deadline = began + wait_seconds
    report = REPORT.get() if bell.session_id is not None else None
    is_offered = is_offered and cost == "short"
    hop = in_shared_transaction if is_offered else in_database
    if cost != "short":
        hop = at_any_length if cost == "open" else at_length
    heard = _Heard[T](look_first, None)
    if not look_first:
        heard = await _hear(bell, look, wait_seconds, is_offered=is_offered)
    while True:
        remaining = min(deadline - loop.time(), draining.seconds_left_to_wait())
        found = heard.found
        if found is None:
            found = await hop(look, remaining <= 0)
        if found is not None:
            if not heard.is_rung and remaining > 0 and bell.session_id is not None:
                metrics.LOST_SESSION.inc()
            return found
        if caller is not None and loop.time() - checked >= CHECK_SECONDS:
            checked = loop.time()
            await in_database(check_caller, caller)
        if report is not None and loop.time() - reported >= REPORT_SECONDS:
            reported = loop.time()
            committed = await in_database(_committed, str(bell.session_id))
            await report(Progress(reported - began, wait_seconds, *committed))
        remaining = min(deadline - loop.time(), draining.seconds_left_to_wait())
        heard = await _hear(bell, look, remaining, is_offered=is_offered)


class _Heard(NamedTuple, Generic[T]):
    """The end of one wait: a ring or not, and what a batch has found already."""

    is_rung: bool
    found: T | None


async def _hear(bell: Doorbell, look: Look[T], seconds: float, *, is_offered: bool) -> _Heard[T]:
    """Wait for a doorbell. A look that ``is_offered`` may be taken meanwhile."""
    if not is_offered or bell.session_id is None:
        return _Heard(await bell.wait(seconds), None)
    with Offer(str(bell.session_id), partial(look, False), bell) as offer:
        is_rung = await bell.wait(seconds)
    outcome = await offer.outcome()
    if outcome is None:
        return _Heard(is_rung, None)
    if outcome.error is not None:
        raise outcome.error
    return _Heard(True, outcome.value)


def _committed(session_id: str) -> _Committed:
    committed = fetch_row(_Committed, _COMMITTED, [as_parameter(as_uuid(session_id))])
    return committed or _Committed("", 0)


def clamped(wait_seconds: float) -> float:
    """A wait in seconds, limited to the longest that a call may take."""
    return max(0.0, min(wait_seconds, conf.max_wait_seconds))
