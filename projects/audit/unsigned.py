"""Rows of a chain that should have been signed, and were not: somebody may have rewritten them.

In each round a server signs every chain that has no signed head yet, and its own chain whenever it
has signed another one. So rows that stay unsigned, while heads of other chains are signed, have
lost their marks.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from projects.audit.log import SERVER
from projects.audit.marks import is_ours
from projects.models import AuditEvent, AuditMark, Project
from projects.storage import clock

NO_SIGNED_HEAD: Final = "NO_SIGNED_HEAD"
"""The code of both answers: a chain without a signed head, and a chain whose marks are gone."""
_SETTLED: Final = timedelta(minutes=10)
"""The time in which a running server surely has another round: rounds are seconds apart."""
_MARKS_LOOKED_AT: Final = 32


def first_unsigned(project_id: UUID, *, after: int) -> tuple[int, datetime] | None:
    """The number and time of the first row behind row ``after``, if the row is old enough.

    It is old enough if a running server would have signed it by now.
    """
    row = (
        AuditEvent.objects.filter(project_id=project_id, seq__gt=after)
        .order_by("seq")
        .values_list("seq", "created_at")
        .first()
    )
    return row if row is not None and row[1] <= clock.now() - _SETTLED else None


def was_passed_over(project_id: UUID, since: datetime | None) -> bool:
    """Returns True if heads of other chains were signed when this one had to be signed, too.

    ``since`` is the time of a row that is not signed. None is for a chain of the server without any
    signed head: each signature of another chain leaves a row there, which is signed at once. The
    last rows of a deleted project are never signed.
    """
    if project_id != SERVER and not Project.objects.filter(id=project_id).exists():
        return False
    # A mark of the future says nothing, and a round that is under way signs one after the other.
    marks = AuditMark.objects.filter(
        kind=AuditMark.Kind.HEAD, created_at__lte=clock.now() - _SETTLED
    ).exclude(project_id=project_id)
    if since is not None:
        marks = marks.filter(created_at__gte=since + _SETTLED)
    return any(map(is_ours, marks.order_by("-id")[:_MARKS_LOOKED_AT]))
