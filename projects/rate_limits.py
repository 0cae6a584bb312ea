"""Rates: how much of something one token, or one address, may have per minute. One row each, so that all server processes count together.

The row says until when the rate is used up at its even pace (the generic cell rate algorithm): a minute's worth may come at once, and
what was used is free again as time goes by. A refusal uses nothing.
"""

import time
from typing import Final

from django.db import connection

from projects.account_errors import RateLimited
from projects.models import RateMeter

WINDOW_SECONDS: Final = 60.0
_MAX_KEY_CHARS: Final = 200

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
    now = time.time()
    cost = min(amount * WINDOW_SECONDS / per_minute, WINDOW_SECONDS)
    statement = _TAKE.format(greatest="MAX" if connection.vendor == "sqlite" else "GREATEST")
    with connection.cursor() as cursor:
        cursor.execute(statement, [key[:_MAX_KEY_CHARS], now + cost, now, cost, now, cost, now + WINDOW_SECONDS])
        if cursor.fetchone() is None:
            raise RateLimited(what, cost + _used_seconds(key, now) - WINDOW_SECONDS)


def rate_check(key: str, per_minute: int, what: str) -> None:
    """Raises RateLimited if not one more fits into the rate; uses nothing."""
    if per_minute > 0 and (over := _used_seconds(key, time.time()) + WINDOW_SECONDS / per_minute - WINDOW_SECONDS) > 0:
        raise RateLimited(what, over)


def forget_idle() -> int:
    """Removes meters that measure nothing any more; how many."""
    return RateMeter.objects.filter(free_at__lt=time.time()).delete()[0]


def _used_seconds(key: str, now: float) -> float:
    with connection.cursor() as cursor:
        cursor.execute(_FREE_AT, [key[:_MAX_KEY_CHARS]])
        row = cursor.fetchone()
    return max(0.0, float(row[0]) - now) if row is not None else 0.0
