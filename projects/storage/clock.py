"""The time that processes agree on for leases, ends, rates and what is old: the database's.

A process whose own clock is wrong would find every host away that another process serves, or refuse
starts as too old. The difference between the two clocks is measured with every new connection, and
once a second. A difference below a second is ignored.
"""

import math
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from projects.conf import conf

TOLERATED_SECONDS: Final = 1.0
_ASK: Final = "SELECT EXTRACT(EPOCH FROM clock_timestamp())::float8"

JUMP_SECONDS: Final = 60.0
STEP_SECONDS: Final = 5.0
"""A step up to this size ends no lease before its owner renews it."""
MOST_STEADY_SECONDS: Final = 3600.0
"""A clock without a jump for this long is trusted about any age."""


@dataclass
class _Offset:
    """The database's clock minus this process's clock, in seconds."""

    seconds: float = 0.0


_offset = _Offset()


def now() -> datetime:
    """The current time of the database."""
    return timezone.now() + timedelta(seconds=_offset.seconds)


def now_seconds() -> float:
    """The current time of the database, in seconds since 1970."""
    return time.time() + _offset.seconds


class Steadiness:
    """Measures how long the clock has run without a jump.

    An age that began before a jump, or before the process, may be wrong.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = time.monotonic()
        self._ahead = now_seconds() - self._since
        self._step = 0.0
        self._stepped_at = -math.inf

    def seconds(self) -> float:
        """The seconds since the process began, or since the clock last jumped."""
        with self._lock:
            return self._look() - self._since

    def step_of_last(self, seconds: float) -> float:
        """By how many seconds the clock was put forward within the last ``seconds``.

        Less than zero: it was put back.
        """
        with self._lock:
            return self._step if self._look() - self._stepped_at < seconds else 0.0

    def _look(self) -> float:
        moment = time.monotonic()
        ahead = now_seconds() - moment
        step = ahead - self._ahead
        if abs(step) > STEP_SECONDS:
            # Our own clock jumped, and the measured offset made up for it a moment later: the two
            # steps add up to none.
            self._step = step + (self._step if moment - self._stepped_at < JUMP_SECONDS else 0.0)
            self._stepped_at = moment
        if abs(step) > JUMP_SECONDS:
            self._since = moment
        # Updated at every look, so that small corrections do not add up to a jump.
        self._ahead = ahead
        return moment


STEADINESS: Final = Steadiness()


def can_tell(age_seconds: float) -> bool:
    """Returns True if the clock can be trusted about an age of ``age_seconds``.

    Ask before you take anything away for its age.
    """
    return STEADINESS.seconds() >= min(age_seconds, MOST_STEADY_SECONDS)


def lease_now(lease_seconds: float) -> datetime:
    """The time by which leases of that length are over.

    A lease that was given before the clock was put forward keeps its whole length. Its owner renews
    it by the new time meanwhile.
    """
    return now() - timedelta(seconds=max(0.0, STEADINESS.step_of_last(lease_seconds)))


def host_lease_now() -> datetime:
    """The time by which leases of hosts are over: a host is online while its lease ends later."""
    return lease_now(conf.lease_seconds)


def approvals_now() -> datetime:
    """The time by which open questions about calls are over: nobody answered them in time."""
    return lease_now(conf.approval_seconds)


def is_of_another_time(moment: str, lease_seconds: float) -> Q:
    """A condition on rows whose lease ends later than any lease given now.

    The clock was put back since then, and nobody has renewed the lease.
    """
    if not can_tell(lease_seconds):
        return Q(pk__in=())
    return Q(**{f"{moment}__gt": now() + timedelta(seconds=lease_seconds + JUMP_SECONDS)})


def measure() -> None:
    """Measures the offset to the database's clock, in a database thread.

    SQLite has no clock of its own.
    """
    if connection.vendor != "postgresql":
        return
    before = time.time()
    with connection.cursor() as cursor:
        cursor.execute(_ASK)
        (there,) = cursor.fetchone()
    # The database read its clock at some time between the two: assume the middle.
    uncertain = (time.time() - before) / 2
    ahead = there - (before + uncertain)
    _offset.seconds = ahead if abs(ahead) > TOLERATED_SECONDS + uncertain else 0.0
