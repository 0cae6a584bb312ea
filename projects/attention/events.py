"""Raise and resolve an event, inside the transaction of what it is about.

One row for each cause. While it is open, the same cause raised again changes nothing. Once it has
ended, the cause has come back: the event is open again, and people are told again. A project names
the kinds that it wants, each with the seconds after which people are told
(``Project.attention_seconds``). Events of other kinds are not written at all. An approval that
somebody waits for is the exception: it is always written, because the console lists it, and nobody
is told of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Max, Min, Q, Value, When

from projects.audit.log import audit
from projects.models import AttentionEvent, AttentionKind, Project
from projects.models.attention_kinds import RESOLVED
from projects.storage import clock

ALWAYS_WRITTEN: Final = frozenset({AttentionKind.APPROVAL_WANTED})
"""The kinds that are written for every project."""
MOMENTARY: Final = frozenset({AttentionKind.SESSION_LOST, AttentionKind.RUN_ENDED})
"""The kinds that are over as they happen: nobody has to end them."""
AFTER_ITS_SECONDS: Final = frozenset({AttentionKind.SECRET_WANTED, AttentionKind.INPUT_WANTED})
"""The kinds that are written only once they have lasted for the seconds of the project."""
GATHERED: Final = frozenset(
    {AttentionKind.HOST_AWAY, AttentionKind.HOST_ALARM, AttentionKind.SESSION_LOST}
)
"""The kinds of which many come at once, when a network or a host fails."""
GATHERING_SECONDS: Final = 10.0
"""People are told of events of these kinds so much later, to be told of all of them at once."""
_SHORTEST_REST: Final = timedelta(seconds=10)
_LONGEST_REST: Final = timedelta(minutes=10)
"""People are told of a cause that comes and goes ever more rarely, up to so often."""
MAX_WANTED_CHARS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The occurrence that an event is about.

    ``key`` is unique among all causes. ``path`` is the page about it; by default that of its
    session or host. ``detail`` holds facts only: never typed text, output or a prompt. With
    ``is_asked`` a caller asks for it, and it is written whatever the project wants.
    """

    kind: AttentionKind
    key: str
    project_id: UUID
    controller_id: UUID | None = None
    session_id: UUID | None = None
    path: str = ""
    wanted: str = ""
    detail: Mapping[str, object] = field(default_factory=dict)
    is_asked: bool = False


def attention_raise(cause: Cause) -> UUID | None:
    """Write the event of ``cause`` in the caller's transaction, unless it is open already.

    Returns the id of the event; None if the project does not want this kind.
    """
    seconds = _seconds_of(cause.project_id).get(cause.kind)
    if seconds is None and not cause.is_asked and cause.kind not in ALWAYS_WRITTEN:
        return None
    return _write(cause, seconds)


def attention_resolve(key: str, resolution: str, *, by: str = "") -> bool:
    """End the event of this cause in the caller's transaction.

    ``resolution`` says in a word how the cause ended, and ``by`` who ended it. Those who were told
    of the event are told of its end if the project wants that. Returns False if there is no such
    event, or if it has ended before.
    """
    is_open = AttentionEvent.objects.filter(cause=key, resolved_at__isnull=True)
    project_id = is_open.values_list("project_id", flat=True).first()
    if project_id is None:
        return False
    now, seconds = clock.now(), _seconds_of(project_id).get(RESOLVED)
    due_at = None
    if seconds is not None:
        told = When(told_at__isnull=False, then=Value(now + timedelta(seconds=seconds)))
        due_at = Case(told, default=Value(None))
    ended = {"resolved_at": now, "resolution": resolution, "resolved_by": by[:128]}
    # What is over needs no rest: a snooze would hold up the news of the end.
    return bool(is_open.update(**ended, due_at=due_at, snoozed_until=None, snoozed_by=""))


@transaction.atomic
def attention_snooze(event: AttentionEvent, time: timedelta, *, actor: str) -> bool:
    """Let an open event rest for so long; then people are told of it again.

    Returns False if the event has ended.
    """
    until = clock.now() + time
    is_told = Q(told_at__isnull=False) | Q(due_at__isnull=False)
    again = Case(When(is_told, then=Value(until)), default=Value(None))
    is_open = AttentionEvent.objects.filter(id=event.id, resolved_at__isnull=True)
    if not is_open.update(snoozed_until=until, snoozed_by=actor[:128], due_at=again):
        return False
    about = (event.project_id, event.controller_id, event.session_id)
    audit(actor, "attention.snooze", about, {"kind": event.kind, "until": until.isoformat()})
    return True


def _seconds_of(project_id: UUID) -> Mapping[str, float]:
    rows = Project.objects.filter(id=project_id).values_list("attention_seconds", flat=True)
    return rows.first() or {}


def _write(cause: Cause, seconds: float | None) -> UUID:
    now = clock.now()
    event = AttentionEvent(
        cause=cause.key,
        kind=cause.kind,
        project_id=cause.project_id,
        controller_id=cause.controller_id,
        session_id=cause.session_id,
        path=cause.path or _path(cause),
        wanted=cause.wanted[:MAX_WANTED_CHARS],
        detail=dict(cause.detail),
        raised_at=now,
        due_at=_due(cause.kind, now, seconds),
        resolved_at=now if cause.kind in MOMENTARY else None,
    )
    # A conflict is a cause that is known. It must not break the caller's transaction.
    AttentionEvent.objects.bulk_create([event], ignore_conflicts=True)
    known = AttentionEvent.objects.get(cause=cause.key)
    if known.id != event.id and known.resolved_at is not None:
        _open_again(known.id, event)
    return known.id


def _open_again(event_id: UUID, back: AttentionEvent) -> None:
    """Open the event of a cause that has come ``back``. Who asked for what stays as it is."""
    ended = AttentionEvent.objects.select_for_update(no_key=True).filter(resolved_at__isnull=False)
    known = ended.filter(id=event_id).first()
    if known is None:
        return
    told_at, due_at = None, _rested(known, back.due_at)
    if known.told_at and known.due_at:
        # Nobody knows of the end yet, so there is no news.
        told_at, due_at = known.told_at, None
    ended.filter(id=event_id).update(
        kind=back.kind,
        detail=back.detail,
        raised_at=back.raised_at,
        due_at=due_at,
        told_at=told_at,
        resolved_at=back.resolved_at,
        resolution="",
        resolved_by="",
    )


def _rested(known: AttentionEvent, due_at: datetime | None) -> datetime | None:
    """The moment ``due_at`` or later: the longer people have been told of it, the more rarely."""
    told = known.messages.aggregate(first=Min("created_at"), last=Max("created_at"))
    if due_at is None or told["last"] is None:
        return due_at
    rest = min(max(told["last"] - told["first"], _SHORTEST_REST), _LONGEST_REST)
    # The clock may have been ahead when they were told.
    again: datetime = min(told["last"], clock.now()) + rest
    return max(due_at, again)


def _due(kind: AttentionKind, now: datetime, seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    # A prompt has stayed for its seconds before it is an event.
    wait = 0.0 if kind in AFTER_ITS_SECONDS else seconds
    return now + timedelta(seconds=wait + (GATHERING_SECONDS if kind in GATHERED else 0.0))


def _path(cause: Cause) -> str:
    if cause.session_id is not None:
        return f"/sessions/{cause.session_id}/"
    return "" if cause.controller_id is None else f"/hosts/{cause.controller_id}/"
