"""Reads on behalf of callers.

Every read names a project, or comes after a read that did. To a caller the rows of another project
do not exist.
"""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from controller_client.protocol.session_state import ACTIVE_STATES
from projects.conf import conf
from projects.errors.hosts import ControllerAmbiguous, ControllerNotFound, NoControllerEnrolled
from projects.errors.limits import LifetimeTooLong
from projects.errors.sessions import SessionNotFound
from projects.models import AuditEvent, CommandSession
from projects.storage import clock
from projects.storage.columns import as_parameter, is_one_of, sql
from projects.storage.rows import fetch_row, fetch_rows

ACTIVE: Final = tuple(sorted(state.value for state in ACTIVE_STATES))
STATE_IS_ACTIVE: Final = f"state IN ({', '.join(map(repr, ACTIVE))})"
"""A condition in words that the indexes of active sessions have, too.

SQLite does not find such an index by parameters.
"""
IS_ACTIVE: Final = is_one_of("state", ACTIVE)
"""The same for a queryset of sessions."""
RECEIPTS: Final = 20


def is_online(lease_expires_at: datetime | None) -> bool:
    """True if a controller with this lease is online. Nothing but the lease says so."""
    return lease_expires_at is not None and lease_expires_at > clock.host_lease_now()


class EnrolledController(NamedTuple):
    """A host that a session can be started on."""

    id: UUID
    name: str
    lease_expires_at: datetime | None


_ENROLLED: Final = (
    "SELECT id, name, lease_expires_at FROM projects_controller WHERE project_id = %s AND "
    "revoked_at IS NULL ORDER BY name"
)


def controller_for(project_id: UUID, name_or_id: str | None) -> EnrolledController:
    """The controller that a caller means by this name or id; for None the only one there is.

    Raises NoControllerEnrolled, ControllerNotFound or ControllerAmbiguous.
    """
    enrolled = fetch_rows(EnrolledController, _ENROLLED, [as_parameter(project_id)])
    if name_or_id is not None:
        for controller in enrolled:
            if name_or_id in (controller.name, str(controller.id)):
                return controller
        raise ControllerNotFound(name_or_id, [controller.name for controller in enrolled])
    if not enrolled:
        raise NoControllerEnrolled
    if len(enrolled) > 1:
        raise ControllerAmbiguous([controller.name for controller in enrolled])
    return enrolled[0]


_WITH_SLOT: Final = sql(
    """
SELECT id, slot FROM projects_commandsession
WHERE project_id = %s AND kind = %s AND slot IS NOT NULL AND {is_active}
ORDER BY created_at
""",
    is_active=STATE_IS_ACTIVE,
)
_SESSION_LIMITS: Final = """
SELECT name, max_interactive_sessions, default_lifetime_seconds, max_lifetime_seconds
FROM projects_project WHERE id = %s
"""


class SessionLimits(NamedTuple):
    """The limits that a project sets for its interactive sessions.

    A lifetime that is None is the one of the settings.
    """

    project_name: str
    max_active: int
    default_lifetime_seconds: int | None
    max_lifetime_seconds: int | None

    def lifetime(self, asked_seconds: float | None) -> float:
        """The lifetime of a session, in seconds, for what its caller asked. Raises LifetimeTooLong.

        A caller who asks for none gets the default.
        """
        longest = float(self.max_lifetime_seconds or conf.interactive_cmd_timeout_seconds)
        if asked_seconds is None:
            return min(
                float(self.default_lifetime_seconds or conf.interactive_cmd_timeout_seconds),
                longest,
            )
        if asked_seconds > longest:
            raise LifetimeTooLong(asked_seconds, longest, self.project_name)
        return asked_seconds


class TakenSlot(NamedTuple):
    """A session that counts against the limit of its kind."""

    session_id: UUID
    slot: int


def taken_slots(project_id: UUID, kind: str) -> list[TakenSlot]:
    """The slots that sessions of this kind have, oldest session first."""
    return fetch_rows(TakenSlot, _WITH_SLOT, [as_parameter(project_id), kind])


def locked_session_limits_of(project_id: UUID) -> SessionLimits:
    """The limits of the project, whose row is locked; all 0 or None if the project is gone.

    Every other start in this project waits until the transaction ends.
    """
    lock = " FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""
    limits = fetch_row(SessionLimits, _SESSION_LIMITS + lock, [as_parameter(project_id)])
    return limits or SessionLimits("", 0, None, None)


def found_after_starts(
    project_id: UUID, sessions: QuerySet[CommandSession]
) -> list[CommandSession]:
    """The sessions of a queryset, once each start that has begun in this project has ended.

    No other start in the project begins before the transaction around the call ends.
    """
    with transaction.atomic():
        # A start takes the same lock first. Without it, one that commits a moment later is missed.
        locked_session_limits_of(project_id)
        return list(sessions.all())


def session_of(project_id: UUID, session_id: UUID) -> CommandSession:
    """One session of the project. Raises SessionNotFound, also for a session of another project."""
    session = (
        CommandSession.objects.select_related("controller")
        .filter(project_id=project_id, id=session_id)
        .first()
    )
    if session is None:
        raise SessionNotFound(session_id)
    return session


def receipts_of(project_id: UUID, session_id: UUID) -> list[AuditEvent]:
    """The newest audit rows about a session of the project, at most RECEIPTS, oldest first."""
    # A caller of another project may have given a monitor the id of the session.
    rows = AuditEvent.objects.filter(project_id=project_id, session_id=session_id)
    return list(rows.order_by("-id")[:RECEIPTS])[::-1]
