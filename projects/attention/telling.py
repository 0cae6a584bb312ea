"""Turn events that are due into messages, one message for all events of a kind that came together.

Events and messages change in one transaction: after a crash an event is still due, or its messages
are there.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q, QuerySet

from projects.attention.bodies import News
from projects.attention.events import GATHERED, GATHERING_SECONDS
from projects.attention.messages import TooManyWaiting, room_of
from projects.models import AttentionEvent, AttentionMessage, AttentionTarget
from projects.models.attention_kinds import RESOLVED
from projects.storage import clock

MOST_AT_ONCE: Final = 500


class _Group(NamedTuple):
    """Events that are told together: of one project, one kind, and begun or ended."""

    project_id: UUID
    kind: str
    is_end: bool


def has_due_events() -> bool:
    """True if somebody is to be told something."""
    return _due().exists()


@transaction.atomic
def messages_write() -> int:
    """Write the messages of all events that are due. Returns how many messages were written."""
    groups: dict[_Group, list[AttentionEvent]] = defaultdict(list)
    rows = AttentionEvent.objects.select_for_update(no_key=True, of=("self",))
    # One that has ended or come back before it was locked may have nothing to tell any more.
    rows = rows.filter(due_at__isnull=False)
    for event in rows.filter(pk__in=[each.pk for each in _due()[:MOST_AT_ONCE]]):
        is_end = event.told_at is not None and event.resolved_at is not None
        groups[_Group(event.project_id, event.kind, is_end)].append(event)
    return sum(_tell(group, events) for group, events in groups.items())


def _due() -> QuerySet[AttentionEvent]:
    now = clock.now()
    is_due = Q(due_at__lte=now) & (Q(snoozed_until__isnull=True) | Q(snoozed_until__lte=now))
    soon = AttentionEvent.objects.filter(due_at__lte=now + timedelta(seconds=GATHERING_SECONDS))
    # Those that are due soon come with one that is due now.
    gathering = AttentionEvent.objects.filter(is_due, kind__in=GATHERED).order_by()
    is_gathered = Q(kind__in=GATHERED, project_id__in=gathering.values("project_id"))
    return soon.filter(is_due | is_gathered).order_by("due_at")


def _tell(group: _Group, events: Sequence[AttentionEvent]) -> int:
    now = clock.now()
    ids = [event.pk for event in events]
    AttentionEvent.objects.filter(pk__in=ids).update(due_at=None, told_at=now)
    written = 0
    for target in AttentionTarget.objects.filter(project_id=group.project_id, is_enabled=True):
        wanted = RESOLVED if group.is_end else group.kind
        told = events if not target.kinds or wanted in target.kinds else ()
        if group.is_end:
            told = _known_to(target, events) if told else ()
        if told:
            _write(target, wanted, told)
            written += 1
    return written


def _known_to(
    target: AttentionTarget, events: Sequence[AttentionEvent]
) -> Sequence[AttentionEvent]:
    known = set(
        AttentionEvent.objects.filter(
            pk__in=[event.pk for event in events], messages__target=target
        ).values_list("pk", flat=True)
    )
    return [event for event in events if event.pk in known]


def _write(target: AttentionTarget, kind: str, events: Sequence[AttentionEvent]) -> None:
    message = message_of(target, kind, events)
    if not room_of(target):
        message.due_at, message.dead_at = None, message.created_at
        message.last_error = str(TooManyWaiting())
    message.save(force_insert=True)
    message.events.add(*events)


def message_of(
    target: AttentionTarget, kind: str, events: Sequence[AttentionEvent]
) -> AttentionMessage:
    """A message that is due now, not stored yet."""
    now = clock.now()
    count, project = max(1, len(events)), target.project.name
    news = News.of(project, kind, events, count, has_texts=target.has_texts)
    return AttentionMessage(
        id=uuid4(),
        target=target,
        kind=kind,
        event_count=len(events),
        body=news.text,
        created_at=now,
        began_at=now,
        due_at=now,
    )
