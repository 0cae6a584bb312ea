"""What was kept for long enough goes: output, then sessions with all they have, audit rows from the beginning of their chains.

Everything is removed by small transactions, and no more of them in one round than ROUND_BATCHES: writers fit in between, on SQLite
too, and the sweeper gets to its other work. What a round leaves is found again by the next, and a step may be repeated.
A project may say for itself how long its output and its sessions stay; 0 is for good, everywhere.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from projects import metrics, output_log
from projects.audit_log import SERVER, audit
from projects.audit_proof import audit_expire
from projects.conf import conf
from projects.database import at_length, in_database
from projects.models import ActionRequest, AuditEvent, CommandSession, ControllerCommand, OutputChunk, OutputGap, Project, ReadCursor

ACTOR: Final = "sweeper"
ROUND_BATCHES: Final = 200
ROWS_AT_ONCE: Final = 200
_SESSIONS_AT_ONCE: Final = 100
# Rows of a session, and how many go at once.
_PARTS: Final = (
    (OutputChunk.objects, output_log.TRIM_CHUNKS_PER_TRANSACTION),
    (OutputGap.objects, ROWS_AT_ONCE),
    (ControllerCommand.objects, ROWS_AT_ONCE),
    (ActionRequest.objects, ROWS_AT_ONCE),
    (ReadCursor.objects, ROWS_AT_ONCE),
)


async def expire() -> None:
    """One round. Raises StorageUnavailable."""
    left = ROUND_BATCHES
    for find, step, kind in (
        (sessions_to_clear, _clear, "output"),
        (sessions_to_remove, _remove, "session"),
        (chains_to_shorten, _shorten, "audit"),
    ):
        for key in await at_length(find):
            while left and await in_database(step, key):
                left -= 1
            if not left:
                return
            metrics.EXPIRED_ROWS.labels(kind).inc()


# ---- output ------------------------------------------------------------------------------------------------------------


def sessions_to_clear() -> list[UUID]:
    """Ended sessions whose output was kept for long enough."""
    interactive = Q(kind=CommandSession.Kind.INTERACTIVE)
    found: list[UUID] = []
    for of_project, own_seconds in _policies("output_retention_seconds"):
        for of_kind, seconds in ((interactive, conf.output_retention_seconds), (~interactive, conf.command_retention_seconds)):
            rows = CommandSession.objects.filter(of_project, of_kind, cleared_at__isnull=True)
            found += _ended_before(rows, seconds if own_seconds is None else own_seconds)
    return found


def _clear(session_id: UUID) -> bool:
    """A batch of a session's output; whether there may be more."""
    if output_log.clear(session_id):
        return True
    with transaction.atomic():
        # Only now: had the process died meanwhile, the next round would have gone on.
        if CommandSession.objects.filter(id=session_id, cleared_at__isnull=True).update(cleared_at=timezone.now()):
            audit(ACTOR, "session.clear", _about(session_id))
    return False


# ---- sessions ----------------------------------------------------------------------------------------------------------


def sessions_to_remove() -> list[UUID]:
    """Ended sessions that were kept for long enough."""
    found: list[UUID] = []
    for of_project, own_seconds in _policies("session_retention_seconds"):
        found += _ended_before(
            CommandSession.objects.filter(of_project), conf.session_retention_seconds if own_seconds is None else own_seconds
        )
    return found


def _remove(session_id: UUID) -> bool:
    """A batch of what a session has, the session itself at last; whether there is more."""
    for part, at_once in _PARTS:
        ids = list(part.filter(session=session_id).values_list("pk", flat=True)[:at_once])
        if ids:
            part.filter(pk__in=ids).delete()
            return True
    with transaction.atomic():
        about = _about(session_id)
        if CommandSession.objects.filter(id=session_id).delete()[0]:
            audit(ACTOR, "session.expire", about)
    return False


def _about(session_id: UUID) -> tuple[UUID | None, UUID | None, UUID | None]:
    row = CommandSession.objects.filter(id=session_id).values_list("project_id", "controller_id").first()
    return (*row, session_id) if row is not None else (None, None, session_id)


# ---- audit -------------------------------------------------------------------------------------------------------------


def chains_to_shorten() -> list[UUID]:
    """Projects whose oldest audit row was kept for long enough; the server's own chain among them."""
    if not conf.audit_retention_seconds:
        return []
    before = timezone.now() - timedelta(seconds=conf.audit_retention_seconds)
    return [chain for chain in (SERVER, *Project.objects.values_list("id", flat=True)) if _begins_before(chain, before)]


def _begins_before(project_id: UUID, before: datetime) -> bool:
    oldest = AuditEvent.objects.filter(project_id=project_id).order_by("seq").values_list("created_at", flat=True).first()
    return oldest is not None and oldest < before


def _shorten(project_id: UUID) -> bool:
    before = timezone.now() - timedelta(seconds=conf.audit_retention_seconds)
    return audit_expire(project_id, before, actor=ACTOR) > 0


# ---- policies ----------------------------------------------------------------------------------------------------------


def _policies(field: str) -> Iterator[tuple[Q, int | None]]:
    """Which projects, and their own number of seconds; None for those without one. Few projects have one: a query each."""
    own = dict(Project.objects.filter(**{f"{field}__isnull": False}).values_list("id", field))
    yield ~Q(project_id__in=list(own)) if own else Q(), None
    for project_id, seconds in own.items():
        yield Q(project_id=project_id), seconds


def _ended_before(rows: "QuerySet[CommandSession]", seconds: float) -> list[UUID]:
    if not seconds:
        return []
    over = rows.filter(ended_at__lt=timezone.now() - timedelta(seconds=seconds)).order_by("ended_at")
    return list(over.values_list("id", flat=True)[:_SESSIONS_AT_ONCE])
