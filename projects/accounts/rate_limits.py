"""Rates: how much of something one token, or one address, may use per minute.

Each rate is one row, so that all server processes count together. The row holds the moment until
which the rate is used up at an even pace (the generic cell rate algorithm). A minute's worth may be
used at once, and becomes free again as time goes by. A refusal uses nothing.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from django.db import transaction

from projects.accounts.errors import RateLimited
from projects.errors.base import ControllerActionError
from projects.models import RateMeter
from projects.storage import clock
from projects.storage.columns import is_sqlite
from projects.storage.rows import execute
from projects.storage.shared import one_transaction

WINDOW_SECONDS: Final = 60.0
_MAX_KEY_CHARS: Final = 200
# The part of a minute's worth that a process takes ahead.
_AHEAD: Final = 64
_MAX_AHEAD: Final = 4096

# No rate is used up for longer than this from now on. A row that says otherwise was written before
# the clock was put back.
_LONGEST_SECONDS: Final = WINDOW_SECONDS + clock.STEP_SECONDS

# SQLite calls it MAX.
_TAKE: Final = """
INSERT INTO projects_ratemeter (key, free_at) VALUES (%s, %s)
ON CONFLICT (key) DO UPDATE SET
    free_at = CASE
        WHEN projects_ratemeter.free_at > %s THEN %s
        ELSE {greatest}(projects_ratemeter.free_at, %s) END + %s
WHERE CASE
    WHEN projects_ratemeter.free_at > %s THEN %s
    ELSE {greatest}(projects_ratemeter.free_at, %s) END + %s <= %s
RETURNING free_at
"""
_GIVE_BACK: Final = "UPDATE projects_ratemeter SET free_at = free_at - %s WHERE key = %s"
_FREE_AT: Final = "SELECT free_at FROM projects_ratemeter WHERE key = %s"


def rate_take(key: str, amount: float, per_minute: int, what: str) -> None:
    """Uses ``amount`` of the rate ``key``, inside the transaction of what it is used for.

    0 per minute means no limit. More than a minute's worth at once counts as a minute's worth: it
    passes if nothing else was used.

    Raises:
        RateLimited: if the rate is used up.

    """
    if per_minute <= 0:
        return
    now = clock.now_seconds()
    cost = min(amount * WINDOW_SECONDS / per_minute, WINDOW_SECONDS)
    statement = _TAKE.format(greatest="MAX" if is_sqlite() else "GREATEST")
    free = (now + _LONGEST_SECONDS, now, now)
    taken = execute(
        statement,
        [key[:_MAX_KEY_CHARS], now + cost, *free, cost, *free, cost, now + WINDOW_SECONDS],
    )
    if taken.fetchone() is None:
        raise RateLimited(what, cost + _used_seconds(key, now) - WINDOW_SECONDS)


def rate_give_back(key: str, amount: float, per_minute: int) -> None:
    """Frees what ``rate_take`` used with the same arguments."""
    if per_minute > 0:
        cost = min(amount * WINDOW_SECONDS / per_minute, WINDOW_SECONDS)
        execute(_GIVE_BACK, [cost, key[:_MAX_KEY_CHARS]])


# (key, rate per minute) -> the amount that this process took ahead and has left, and until when.
_ahead: dict[tuple[str, int], tuple[float, float]] = {}
_ahead_lock = threading.Lock()


class _TakenAmount(NamedTuple):
    """An amount of a rate that a transaction took.

    ``here`` came from what this process has ahead until ``until``, and a rollback leaves it used.
    ``in_database`` is the rest, which a rollback gives back.
    """

    key: str
    per_minute: int
    what: str
    here: float
    until: float
    in_database: float = 0.0


class _TakenHere(threading.local):
    """The amounts that this thread took in a block of ``used_if_refused``; None outside of one."""

    amounts: list[_TakenAmount] | None = None

    def note(self, taken: _TakenAmount) -> None:
        """Keep an amount for the end of the block."""
        if self.amounts is not None:
            self.amounts.append(taken)


_taken_here = _TakenHere()


@contextmanager
def used_if_refused() -> Iterator[None]:
    """Use rates for a transaction, the block, also if it is undone because its call is refused.

    Otherwise somebody could try calls against the rules for nothing. A refusal that says
    ``retryable``, as any other error, uses nothing: the same call may come again.
    """
    undone: list[_TakenAmount] = []
    before, _taken_here.amounts = _taken_here.amounts, undone
    try:
        yield
    except Exception as error:
        _taken_here.amounts = None
        is_used = isinstance(error, ControllerActionError) and not error.retryable
        for taken in undone:
            if not is_used:
                _keep((taken.key, taken.per_minute), taken.here, taken.until)
            elif taken.in_database:
                with suppress(RateLimited), one_transaction():
                    rate_take_ahead(taken.key, taken.in_database, taken.per_minute, taken.what)
        raise
    finally:
        _taken_here.amounts = before


def rate_take_ahead(key: str, amount: float, per_minute: int, what: str) -> None:
    """Uses a rate as ``rate_take`` does, for small amounts that every turn needs.

    Each call of a token would lock the row of its rate until it commits, and the calls would run
    one after the other. So a 64th of a minute's worth is taken at once, and this process uses up
    the rest within a minute. Outside of ``used_if_refused`` an amount that a rolled back action
    used of that rest stays used.
    """
    meter, now = (key, per_minute), clock.now_seconds()
    with _ahead_lock:
        left, until = _ahead.get(meter, (0.0, 0.0))
        left = left if until > now else 0.0
        if amount <= left:
            _ahead[meter] = (left - amount, until)
            _taken_here.note(_TakenAmount(key, per_minute, what, amount, until))
            return
        _ahead.pop(meter, None)
    missing = amount - left
    try:
        taken = _taken_ahead(key, missing, per_minute, what)
    except RateLimited:
        _keep(meter, left, until)
        raise
    _taken_here.note(_TakenAmount(key, per_minute, what, left, until, missing))
    if taken > missing:
        transaction.on_commit(lambda: _keep(meter, taken - missing, now + WINDOW_SECONDS))


def _taken_ahead(key: str, missing: float, per_minute: int, what: str) -> float:
    """Takes a share that covers ``missing`` if the rate allows it. Returns how much was taken."""
    share = per_minute // _AHEAD
    if share > missing:
        with suppress(RateLimited):
            rate_take(key, share, per_minute, what)
            return share
    rate_take(key, missing, per_minute, what)
    return missing


def _keep(meter: tuple[str, int], left: float, until: float) -> None:
    """Adds to the amount that another thread may have kept in the meantime."""
    with _ahead_lock:
        if len(_ahead) >= _MAX_AHEAD:
            _ahead.clear()
        there, there_until = _ahead.get(meter, (0.0, 0.0))
        _ahead[meter] = (left + (there if there_until > clock.now_seconds() else 0.0), until)


def rate_check(key: str, per_minute: int, what: str) -> None:
    """Raises RateLimited if the rate has no room for one more; uses nothing."""
    if per_minute <= 0:
        return
    free_seconds = WINDOW_SECONDS - _used_seconds(key, clock.now_seconds())
    over = WINDOW_SECONDS / per_minute - free_seconds
    if over > 0:
        raise RateLimited(what, over)


def forget_idle() -> int:
    """Removes meters that measure nothing any more. Returns their number."""
    return RateMeter.objects.filter(free_at__lt=clock.now_seconds()).delete()[0]


def _used_seconds(key: str, now: float) -> float:
    row = execute(_FREE_AT, [key[:_MAX_KEY_CHARS]]).fetchone()
    used = max(0.0, float(row[0]) - now) if row is not None else 0.0
    return used if used <= _LONGEST_SECONDS else 0.0
