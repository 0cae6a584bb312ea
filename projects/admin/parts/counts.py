"""Counts beside the rows of a list, which cost what they count and not what is kept."""

from django.db.models import Count, IntegerField, OuterRef, Subquery, Value
from django.db.models.functions import Coalesce

from projects.models import CommandSession
from projects.sessions.selectors import IS_ACTIVE


def active_sessions(of: str) -> Coalesce:
    """The number of active sessions of a row; ``of`` is the field that leads there."""
    active = CommandSession.objects.filter(IS_ACTIVE, **{of: OuterRef("pk")}).order_by()
    counted = active.values(of).annotate(count=Count("pk")).values("count")
    return Coalesce(Subquery(counted), Value(0), output_field=IntegerField())
