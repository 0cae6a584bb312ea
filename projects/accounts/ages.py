"""The age of a ``request_id``: whether it may be from before a restore of the database.

A restored database has forgotten the calls that were made after its backup. A repeat of such a call
looks like a new call. So for REPEATS_LAST after a restore, an id that has no row is refused unless
it says itself that it is newer: a UUID of version 7 begins with the time at which it was made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final
from uuid import UUID, uuid4

from projects.errors.uncertain import RequestNotKnown
from projects.models import Restore
from projects.storage import clock

REPEATS_LAST: Final = timedelta(days=1)
"""No caller repeats a call for longer than this."""
_VERSION_AND_VARIANT: Final = 0xF << 76 | 0b11 << 62
_VERSION_7: Final = 7 << 76 | 0b10 << 62
_since: ContextVar[float] = ContextVar("_since", default=0.0)


@contextmanager
def made_since(moment: datetime) -> Iterator[None]:
    """Inside, calls are surely made after ``moment``, whatever their ids say."""
    token = _since.set(moment.timestamp())
    try:
        yield
    finally:
        _since.reset(token)


def require_known(request_id: UUID) -> None:
    """Raises RequestNotKnown if the id may be that of a call from before a restore."""
    restored = last_restore()
    if restored is None or max(_since.get(), _seconds_of(request_id)) > restored.timestamp():
        return
    if clock.now() < restored + REPEATS_LAST:
        raise RequestNotKnown(new_id())


@lru_cache(maxsize=1)
def last_restore() -> datetime | None:
    """The time of the newest restore; None if there was none.

    Asked once per process: no process serves while its database is restored.
    """
    return Restore.objects.order_by("-id").values_list("at", flat=True).first()


def new_id() -> UUID:
    """A new id, which says that it is made now."""
    return _made_at(clock.now())


def _made_at(moment: datetime) -> UUID:
    """A new UUID of version 7, which says ``moment``."""
    random = uuid4().int & ((1 << 80) - 1) & ~_VERSION_AND_VARIANT
    return UUID(int=int(moment.timestamp() * 1000) << 80 | random | _VERSION_7)


def _seconds_of(request_id: UUID) -> float:
    """The time in a UUID of version 7, in seconds since 1970; 0 for others."""
    return (request_id.int >> 80) / 1000 if request_id.version == 7 else 0.0
