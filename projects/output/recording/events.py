"""The events of sessions, beside their output: prompts, inputs, sizes, operators, the end.

Events are only appended. The writer holds the row of the session locked, so the numbers of a
session's events are dense. A turn appends its events in the transaction that stores its output, so
the statement is written out.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Max

from controller_client.protocol.messages import HostTime
from projects.models import CommandSession, SessionEvent
from projects.storage import clock
from projects.storage.columns import as_parameter, host_columns, time_as_parameter
from projects.storage.rows import execute

MAX_EVENTS: Final = 20_000
"""The newest events of a session that are kept: a program may change its prompt all day."""
TRIM_EVENTS_PER_TRANSACTION: Final = 500
MAX_ACTOR_CHARS: Final = 128
_SIZES: Final = (16, 256, 4096, 65_536)

_INSERT: Final = """
INSERT INTO projects_sessionevent
    (session_id, seq, kind, "offset", host_time, host_clock, created_at, actor, detail)
VALUES {rows}
"""
# The last number is that before the statement, for each of its rows.
_ROW: Final = """
(%s, (SELECT COALESCE(MAX(seq), 0) FROM projects_sessionevent WHERE session_id = %s) + %s,
    %s, COALESCE(%s, (SELECT stdout_next_offset FROM projects_commandsession WHERE id = %s)),
    %s, %s, %s, %s, %s)
"""
_ROWS_AT_ONCE: Final = 16


class NewEvent(NamedTuple):
    """An event to be stored.

    ``offset`` is the number of bytes that the program had written to ``stdout``; None: as many as
    are stored. ``at`` is the time by the clocks of the host; None: the server's time is all there
    is. ``detail`` is JSON, and never holds typed text.
    """

    session_id: UUID
    kind: str
    offset: int | None = None
    actor: str = ""
    detail: Mapping[str, object] = {}
    at: HostTime | None = None


def append(events: Sequence[NewEvent]) -> None:
    """Store events in their order, in a transaction that has locked the sessions' rows."""
    now = time_as_parameter(clock.now())
    for start in range(0, len(events), _ROWS_AT_ONCE):
        batch = events[start : start + _ROWS_AT_ONCE]
        numbers: Counter[UUID] = Counter()
        values: list[Any] = []
        for event in batch:
            numbers[event.session_id] += 1
            values += _values(event, numbers[event.session_id], now)
        execute(_insertion(len(batch)), values)


@cache
def _insertion(count: int) -> str:
    return _INSERT.format(rows=",".join([_ROW] * count))


def append_locking(event: NewEvent) -> None:
    """Lock the row of the session and store the event; nothing if there is no such session."""
    locked = CommandSession.objects.select_for_update(no_key=True).filter(id=event.session_id)
    if locked.values_list("id").first() is not None:
        append([event])


def _values(event: NewEvent, number: int, now: datetime | str | None) -> list[Any]:
    key = as_parameter(event.session_id)
    wall, clock = host_columns(event.at)
    numbered = [key, key, number, event.kind, event.offset, key]
    actor = event.actor[:MAX_ACTOR_CHARS]
    return [*numbered, wall, clock, now, actor, json.dumps(dict(event.detail))]


def size_class(size_bytes: int, *, is_hidden: bool) -> int:
    """Return a round number of bytes that an input is not longer than.

    The exact length of a password says too much, so a hidden input counts as one of 16 or more.
    """
    if size_bytes == 0 and not is_hidden:
        return 0
    return next((size for size in _SIZES if size_bytes <= size), _SIZES[-1])


def trim(session_id: UUID) -> bool:
    """Drop a batch of the oldest events over MAX_EVENTS; True if there may be more."""
    stored = SessionEvent.objects.filter(session_id=session_id)
    newest = stored.aggregate(newest=Max("seq"))["newest"] or 0
    doomed = list(
        stored.filter(seq__lte=newest - MAX_EVENTS)
        .order_by("seq")
        .values_list("id", flat=True)[:TRIM_EVENTS_PER_TRANSACTION]
    )
    SessionEvent.objects.filter(id__in=doomed).delete()
    return len(doomed) == TRIM_EVENTS_PER_TRANSACTION
