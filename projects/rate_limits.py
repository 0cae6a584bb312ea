"""Rates: how much of something one token, or one address, may have per minute. One row each, so that all server processes count together.

The row says until when the rate is used up at its even pace (the generic cell rate algorithm): a minute's worth may come at once, and
what was used is free again as time goes by. A refusal uses nothing.
"""

import threading
from contextlib import suppress
from typing import Final

from django.db import connection, transaction

from projects import clock
from projects.account_errors import RateLimited
from projects.models import RateMeter

WINDOW_SECONDS: Final = 60.0
_MAX_KEY_CHARS: Final = 200
# Of a minute's worth, what a process takes at once to use up by itself.
_AHEAD: Final = 64
_MAX_AHEAD: Final = 4096

# SQLite calls it MAX.
_TAKE: Final = """
INSERT INTO projects_ratemeter (key, free_at) VALUES (%s, %s)
ON CONFLICT (key) DO UPDATE SET free_at = {greatest}(projects_ratemeter.free_at, %s) + %s
WHERE {greatest}(projects_ratemeter.free_at, %s) + %s <= %s
RETURNING free_at
"""
_FREE_AT: Final = "SELECT free_at FROM projects_ratemeter WHERE key = %s"


def rate_take(key: str, amount: float, per_minute: int, what: str) -> None:
    """Uses ``amount`` of the rate ``key``; inside the transaction of what it is used for. 0 per minute: no limit. Raises RateLimited.

    More than a minute's worth at once counts as a minute's worth: it is let through when nothing else was used.
    """
    if per_minute <= 0:
        return
    now = clock.now_seconds()
    cost = min(amount * WINDOW_SECONDS / per_minute, WINDOW_SECONDS)
    statement = _TAKE.format(greatest="MAX" if connection.vendor == "sqlite" else "GREATEST")
    with connection.cursor() as cursor:
        cursor.execute(statement, [key[:_MAX_KEY_CHARS], now + cost, now, cost, now, cost, now + WINDOW_SECONDS])
        if cursor.fetchone() is None:
            raise RateLimited(what, cost + _used_seconds(key, now) - WINDOW_SECONDS)


# What this process took ahead: how much of it is left, until when.
_ahead: dict[tuple[str, int], tuple[float, float]] = {}
_ahead_lock = threading.Lock()


def rate_take_ahead(key: str, amount: int, per_minute: int, what: str) -> None:
    """As ``rate_take``, for what every turn uses: a row that every call of a token locked until its commit would put them in a row.

    A 64th of a minute's worth is taken at once, and its rest is this process's own for a minute. What a rolled back action used stays used.
    """
    meter, now = (key, per_minute), clock.now_seconds()
    with _ahead_lock:
        left, until = _ahead.get(meter, (0.0, 0.0))
        left = left if until > now else 0.0
        if amount <= left:
            _ahead[meter] = (left - amount, until)
            return
        _ahead.pop(meter, None)
    missing = amount - left
    try:
        taken = _taken_ahead(key, missing, per_minute, what)
    except RateLimited:
        _keep(meter, left, until)
        raise
    if taken > missing:
        transaction.on_commit(lambda: _keep(meter, taken - missing, now + WINDOW_SECONDS))


def _taken_ahead(key: str, missing: float, per_minute: int, what: str) -> float:
    """How much was taken: more than is missing, where it fits."""
    share = per_minute // _AHEAD
    if share > missing:
        with suppress(RateLimited):
            rate_take(key, share, per_minute, what)
            return share
    rate_take(key, missing, per_minute, what)
    return missing


def _keep(meter: tuple[str, int], left: float, until: float) -> None:
    """Adds to what another thread may have kept meanwhile."""
    with _ahead_lock:
        if len(_ahead) >= _MAX_AHEAD:
            _ahead.clear()
        there, there_until = _ahead.get(meter, (0.0, 0.0))
        _ahead[meter] = (left + (there if there_until > clock.now_seconds() else 0.0), until)


def rate_check(key: str, per_minute: int, what: str) -> None:
    """Raises RateLimited if not one more fits into the rate; uses nothing."""
    if per_minute > 0 and (over := _used_seconds(key, clock.now_seconds()) + WINDOW_SECONDS / per_minute - WINDOW_SECONDS) > 0:
        raise RateLimited(what, over)


def forget_idle() -> int:
    """Removes meters that measure nothing any more; how many."""
    return RateMeter.objects.filter(free_at__lt=clock.now_seconds()).delete()[0]


def _used_seconds(key: str, now: float) -> float:
    with connection.cursor() as cursor:
        cursor.execute(_FREE_AT, [key[:_MAX_KEY_CHARS]])
        row = cursor.fetchone()
    return max(0.0, float(row[0]) - now) if row is not None else 0.0
