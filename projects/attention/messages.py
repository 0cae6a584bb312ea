"""Messages on their way: which are due, what an attempt came to, and the dead letters."""

from collections.abc import Sequence
from datetime import timedelta
from random import SystemRandom
from typing import Final

from django.db import transaction
from django.db.models import Exists, Min, QuerySet

from projects.attention.bodies import MOST_LISTED, News, body_of
from projects.attention.places import Places
from projects.attention.sending import Letter, SendResult
from projects.attention.targets import opened
from projects.audit.log import audit
from projects.conf import conf
from projects.models import AttentionEvent, AttentionMessage, AttentionTarget, Restore
from projects.process import metrics
from projects.storage import clock

TRIED_FOR: Final = timedelta(days=1)
"""A message that its target has not received after this is a dead letter."""
MOST_WAITING: Final = 1000
"""Messages that wait for one target, at most."""
_FIRST_PAUSE_SECONDS: Final = 5.0
_LONGEST_PAUSE_SECONDS: Final = 3600.0
_SPREAD: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = (1 + _SPREAD) * _LONGEST_PAUSE_SECONDS
MOST_FORGOTTEN: Final = 200


class TooManyWaiting(Exception):
    """A dead letter stays one: as many messages as may be wait for its target already."""

    def __init__(self) -> None:
        super().__init__(f"{MOST_WAITING} messages wait for this target already")


def has_due_messages() -> bool:
    """True if a message is to be sent now."""
    return _due().exists()


def _due() -> QuerySet[AttentionMessage]:
    """The messages to send now. A target may have been removed since a backup was made.

    So nothing is sent after a restore before it is confirmed.
    """
    due = AttentionMessage.objects.filter(due_at__lte=clock.now(), target__is_enabled=True)
    return due.exclude(Exists(Restore.objects.filter(confirmed_at__isnull=True)))


def due_letters(on_way: Sequence[Letter] = ()) -> list[Letter]:
    """The oldest due message of each target, for which there is a place beside those ``on_way``.

    A target of which many wait takes one place, so no other one waits for all of them.
    """
    places = Places(on_way)
    due = _due().exclude(target_id__in=[letter.target_id for letter in on_way])
    due = due.exclude(target__project_id__in=places.full_projects())
    targets = due.order_by().values("target_id").annotate(first=Min("due_at")).order_by("first")
    chosen: list[Letter] = []
    for row in targets if places.are_left else ():
        of_target = due.filter(target_id=row["target_id"]).select_related("target__project")
        message = of_target.order_by("due_at", "created_at", "id").first()
        if message is not None and places.give(letter := letter_of(message)):
            chosen.append(letter)
        if not places.are_left:
            break
    return chosen


def letter_of(message: AttentionMessage) -> Letter:
    """The message with the place it goes to, in the form of the target as it is now."""
    target = message.target
    to = opened(target)
    return Letter(
        message_id=message.id,
        target_id=target.id,
        project_id=target.project_id,
        way=target.way,
        to=to,
        body=body_of(target, _news_of(message), to.address),
        attempts=message.attempts,
    )


def _news_of(message: AttentionMessage) -> News:
    if news := News.read(message.body):
        return news
    # A release before this one wrote it in a form that is not kept. What its events are about is
    # known, but not what their programs asked then.
    events = list(message.events.select_related("controller")[:MOST_LISTED])
    count, project = max(1, message.event_count), message.target.project.name
    return News.of(project, message.kind, events, count, has_texts=False)


def record(letter: Letter, outcome: SendResult) -> None:
    """Store what an attempt came to: received, to be tried again, or a dead letter."""
    now = clock.now()
    metrics.ATTENTION_SENDS.labels("failed" if outcome.error else "received").inc()
    waiting = AttentionMessage.objects.filter(id=letter.message_id, due_at__isnull=False)
    attempts = letter.attempts + 1
    if not outcome.error:
        waiting.update(attempts=attempts, due_at=None, sent_at=now, last_error="")
        # The target is back: what waits for it follows at once, the oldest first.
        kept = AttentionMessage.objects.filter(target_id=letter.target_id, due_at__gt=now)
        kept.update(due_at=now)
        return
    error = outcome.error[:200]
    if outcome.is_final or waiting.filter(began_at__lte=now - TRIED_FOR).exists():
        waiting.update(attempts=attempts, due_at=None, dead_at=now, last_error=error)
        return
    due_at = now + timedelta(seconds=pause_after(attempts))
    waiting.update(attempts=attempts, due_at=due_at, last_error=error)


def pause_after(attempts: int) -> float:
    """Seconds until the next attempt: longer each time, and never the same for two messages."""
    pause: float = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** min(attempts - 1, 20))
    return pause * SystemRandom().uniform(1 - _SPREAD, 1 + _SPREAD)


def room_of(target: AttentionTarget) -> int:
    """The number of messages that may still wait for a target."""
    waiting = AttentionMessage.objects.filter(target=target, due_at__isnull=False).count()
    return max(0, MOST_WAITING - waiting)


@transaction.atomic
def send_again(message: AttentionMessage, *, actor: str) -> bool:
    """Try a dead letter for another day, as a new message is tried.

    Returns False for a message that is none. Raises TooManyWaiting.
    """
    now = clock.now()
    dead = AttentionMessage.objects.filter(id=message.id, dead_at__isnull=False)
    if dead.exists() and not room_of(message.target):
        raise TooManyWaiting
    if not dead.update(dead_at=None, due_at=now, began_at=now, attempts=0):
        return False
    about = (message.target.project_id, None, None)
    audit(actor, "attention_message.send_again", about, {"message": str(message.id)})
    return True


def forget_old() -> None:
    """Delete events that have ended, and messages, once they were kept for long enough."""
    seconds = conf.attention_retention_seconds
    if not seconds or not clock.can_tell(seconds):
        return
    before = clock.now() - timedelta(seconds=seconds)
    messages = AttentionMessage.objects.filter(created_at__lt=before, due_at__isnull=True)
    events = AttentionEvent.objects.filter(
        raised_at__lt=before, resolved_at__isnull=False, due_at__isnull=True
    )
    old_messages = messages.order_by("created_at").values_list("pk", flat=True)[:MOST_FORGOTTEN]
    AttentionMessage.objects.filter(pk__in=list(old_messages)).delete()
    old_events = events.order_by("raised_at").values_list("pk", flat=True)[:MOST_FORGOTTEN]
    AttentionEvent.objects.filter(pk__in=list(old_events)).delete()
