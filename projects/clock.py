"""The time by which processes agree on leases, ends and rates: the database's, where several of them share one.

A process whose own clock is wrong would find every host away that another process serves, or refuse starts as too old. How far it is
off is measured whenever a connection is made, and once a second. Within a second it counts as right.
"""

import time
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.utils import timezone

TOLERATED_SECONDS: Final = 1.0
_ASK: Final = "SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8"

_ahead_seconds = 0.0


def now() -> datetime:
    """The time."""
    return timezone.now() + timedelta(seconds=_ahead_seconds)


def now_seconds() -> float:
    """The same in seconds since 1970."""
    return time.time() + _ahead_seconds


def measure() -> None:
    """Asks the database, in a database thread. SQLite has no clock but ours."""
    global _ahead_seconds  # noqa: PLW0603 - one clock per process
    if connection.vendor != "postgresql":
        return
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute(_ASK)
        (there,) = cursor.fetchone()
    # It was asked some time between the two: no better is known.
    uncertain = (time.time() - before) / 2
    ahead = there - (before + uncertain)
    _ahead_seconds = ahead if abs(ahead) > TOLERATED_SECONDS + uncertain else 0.0
