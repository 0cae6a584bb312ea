"""Figures of the whole installation, read from the rows when somebody asks for the metrics. Every process gives the same ones."""

import math

from django.db.models import Count, Min

from controller_client.protocol.session_state import ACTIVE_STATES
from projects import clock, metrics
from projects.models import CommandSession, Controller, ControllerCommand


def take() -> None:
    """Sets the gauges. Its cost grows with what is going on, not with what was kept: active sessions and the outbox have indexes."""
    active = sorted(ACTIVE_STATES)
    found = dict(CommandSession.objects.filter(state__in=active).order_by().values_list("state").annotate(Count("id")))
    for state in active:
        metrics.SESSIONS.labels(state).set(found.get(state, 0))
    outbox = ControllerCommand.objects.filter(settled_at__isnull=True).aggregate(count=Count("id"), oldest=Min("created_at"))
    metrics.OUTBOX_COMMANDS.set(outbox["count"])
    metrics.OUTBOX_AGE.set((clock.now() - outbox["oldest"]).total_seconds() if outbox["oldest"] else 0.0)
    metrics.CONTROLLERS_ONLINE.set(Controller.objects.filter(lease_expires_at__gt=clock.now()).count())


def forget() -> None:
    """The database does not answer: old figures would look like new ones."""
    for state in sorted(ACTIVE_STATES):
        metrics.SESSIONS.labels(state).set(math.nan)
    for gauge in (metrics.OUTBOX_COMMANDS, metrics.OUTBOX_AGE, metrics.CONTROLLERS_ONLINE):
        gauge.set(math.nan)
