"""Figures of the whole installation, read from the rows when somebody asks for the metrics.

Every process gives the same figures.
"""

import math

from django.db.models import Count, Min

from controller_client.protocol.session_state import ACTIVE_STATES
from projects.models import (
    AttentionEvent,
    AttentionMessage,
    CommandSession,
    Controller,
    ControllerCommand,
)
from projects.process import metrics
from projects.sessions.selectors import IS_ACTIVE
from projects.storage import clock, room


def take() -> None:
    """Sets the gauges.

    The cost grows with the active sessions and the outbox, which have indexes, and not with the
    rows that are kept.
    """
    active = sorted(ACTIVE_STATES)
    found = dict(
        CommandSession.objects.filter(IS_ACTIVE)
        .order_by()
        .values_list("state")
        .annotate(Count("id"))
    )
    for state in active:
        metrics.SESSIONS.labels(state).set(found.get(state, 0))
    outbox = ControllerCommand.objects.filter(settled_at__isnull=True).aggregate(
        count=Count("id"), oldest=Min("created_at")
    )
    metrics.OUTBOX_COMMANDS.set(outbox["count"])
    metrics.OUTBOX_AGE.set(
        (clock.now() - outbox["oldest"]).total_seconds() if outbox["oldest"] else 0.0
    )
    free = room.free_bytes()
    metrics.DISK_FREE.set(math.nan if free is None else free)
    metrics.CONTROLLERS_ONLINE.set(
        Controller.objects.filter(lease_expires_at__gt=clock.host_lease_now()).count()
    )
    metrics.ATTENTION_OPEN.set(AttentionEvent.objects.filter(resolved_at__isnull=True).count())
    messages = AttentionMessage.objects
    metrics.ATTENTION_WAITING.set(messages.filter(due_at__isnull=False).count())
    metrics.ATTENTION_DEAD.set(messages.filter(dead_at__isnull=False).count())


def forget() -> None:
    """Clears the gauges while the database does not answer: old figures would look new."""
    for state in sorted(ACTIVE_STATES):
        metrics.SESSIONS.labels(state).set(math.nan)
    for gauge in (
        metrics.OUTBOX_COMMANDS,
        metrics.OUTBOX_AGE,
        metrics.CONTROLLERS_ONLINE,
        metrics.ATTENTION_OPEN,
        metrics.ATTENTION_WAITING,
        metrics.ATTENTION_DEAD,
    ):
        gauge.set(math.nan)
