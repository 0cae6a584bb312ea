"""Removes what was kept for long enough: output, then sessions, then the oldest audit rows.

Everything is removed by small transactions, at most ROUND_BATCHES of them in one round: other
writers get their turn, on SQLite too, and so does the other work of the sweeper. The next round
finds what a round leaves, and a step may be repeated. A project may have its own times for output
and sessions. 0 means for good, everywhere.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from projects.audit.log import SERVER, audit
from projects.audit.proof import audit_expire
from projects.conf import conf
from projects.models import (
    ActionRequest,
    AuditEvent,
    CommandSession,
    ControllerCommand,
    OutputChunk,
    OutputGap,
    Project,
    ReadCursor,
    RecordingScreen,
    SessionEvent,
)
from projects.output import log as output_log
from projects.process import metrics
from projects.sessions.approvals.answering import approvals_keep
from projects.sessions.transactions.erasure import output_clear_some
from projects.storage import clock
from projects.storage.access import in_database, in_upkeep

ACTOR: Final = "sweeper"
ROUND_BATCHES: Final = 200
ROWS_AT_ONCE: Final = 200
_SESSIONS_AT_ONCE: Final = 100
LAST_LOOK_SECONDS: Final = 60
"""Nothing is kept after the end, but the caller is still told how it ended."""
# The rows that a session has, and how many of them are removed at once.
_PARTS: Final = (
    (OutputChunk.objects, output_log.TRIM_CHUNKS_PER_TRANSACTION),
    (OutputGap.objects, ROWS_AT_ONCE),
    (RecordingScreen.objects, ROWS_AT_ONCE),
    (SessionEvent.objects, ROWS_AT_ONCE),
    (ControllerCommand.objects, ROWS_AT_ONCE),
    (ActionRequest.objects, ROWS_AT_ONCE),
    (ReadCursor.objects, ROWS_AT_ONCE),
)


async def expire() -> None:
    """Runs one round of at most ROUND_BATCHES batches. Raises StorageUnavailable."""
    left = ROUND_BATCHES
    for find, step, kind in (
        (sessions_to_clear, _clear, "output"),
        (sessions_to_remove, _remove, "session"),
        (chains_to_shorten, _shorten, "audit"),
    ):
        for key in await in_upkeep(find):
            is_more = True
            while is_more:
                if not left:
                    return
                left -= 1
                is_more = await in_database(step, key)
            metrics.EXPIRED_ROWS.labels(kind).inc()


# ---- output --------------------------------------------------------------------------------------


def sessions_to_clear() -> list[UUID]:
    """Ended sessions whose output was kept for long enough."""
    found: list[UUID] = []
    for of_project, own_seconds in _policies("output_retention_seconds"):
        # One kind after the other: those that are kept for longer are not looked at.
        for kind in CommandSession.Kind:
            seconds = (
                conf.output_retention_seconds
                if kind == CommandSession.Kind.INTERACTIVE
                else conf.command_retention_seconds
            )
            rows = CommandSession.objects.filter(of_project, kind=kind, cleared_at__isnull=True)
            found += _ended_before(rows, seconds if own_seconds is None else own_seconds)
    return found


def _clear(session_id: UUID) -> bool:
    """Removes a batch of a session's output; False if that was the last."""
    return output_clear_some(
        session_id, at_end=lambda: audit(ACTOR, "session.clear", _about(session_id))
    )


# ---- sessions ------------------------------------------------------------------------------------


def sessions_to_remove() -> list[UUID]:
    """Ended sessions that were kept for long enough."""
    found: list[UUID] = []
    for of_project, own_seconds in _policies("session_retention_seconds"):
        found += _ended_before(
            CommandSession.objects.filter(of_project),
            conf.session_retention_seconds if own_seconds is None else own_seconds,
        )
    return found


def _remove(session_id: UUID) -> bool:
    """Removes a batch of a session's rows, and the session at last; True if there is more."""
    for part, at_once in _PARTS:
        ids = list(part.filter(session=session_id).values_list("pk", flat=True)[:at_once])
        if ids:
            with transaction.atomic():
                if part.model is ActionRequest:
                    approvals_keep(ActionRequest.objects.filter(pk__in=ids))
                part.filter(pk__in=ids).delete()
            return True
    with transaction.atomic():
        about = _about(session_id)
        if CommandSession.objects.filter(id=session_id).delete()[0]:
            audit(ACTOR, "session.expire", about)
    return False


def _about(session_id: UUID) -> tuple[UUID | None, UUID | None, UUID | None]:
    row = (
        CommandSession.objects.filter(id=session_id)
        .values_list("project_id", "controller_id")
        .first()
    )
    return (*row, session_id) if row is not None else (None, None, session_id)


# ---- audit ---------------------------------------------------------------------------------------


def chains_to_shorten() -> list[UUID]:
    """The chains whose oldest audit row was kept for long enough, the server's own among them."""
    if not conf.audit_retention_seconds or not clock.can_tell(conf.audit_retention_seconds):
        return []
    before = clock.now() - timedelta(seconds=conf.audit_retention_seconds)
    return [
        chain
        for chain in (SERVER, *Project.objects.values_list("id", flat=True))
        if _begins_before(chain, before)
    ]


def _begins_before(project_id: UUID, before: datetime) -> bool:
    oldest = (
        AuditEvent.objects.filter(project_id=project_id)
        .order_by("seq")
        .values_list("created_at", flat=True)
        .first()
    )
    return oldest is not None and oldest < before


def _shorten(project_id: UUID) -> bool:
    before = clock.now() - timedelta(seconds=conf.audit_retention_seconds)
    return audit_expire(project_id, before, actor=ACTOR) > 0


# ---- policies ------------------------------------------------------------------------------------


def _policies(field: str) -> Iterator[tuple[Q, int | None]]:
    """Conditions on projects, each with their own number of seconds; None for the server's.

    Few projects have a number of their own, so one query for each of them is cheap.
    """
    own = dict(Project.objects.filter(**{f"{field}__isnull": False}).values_list("id", field))
    if field == "output_retention_seconds":
        without = Project.objects.filter(keeps_output=False).values_list("id", flat=True)
        own |= dict.fromkeys(without, LAST_LOOK_SECONDS)
    yield ~Q(project_id__in=list(own)) if own else Q(), None
    for project_id, seconds in own.items():
        yield Q(project_id=project_id), seconds


def _ended_before(rows: "QuerySet[CommandSession]", seconds: float) -> list[UUID]:
    if not seconds or not clock.can_tell(seconds):
        return []
    over = rows.filter(ended_at__lt=clock.now() - timedelta(seconds=seconds)).order_by("ended_at")
    return list(over.values_list("id", flat=True)[:_SESSIONS_AT_ONCE])
