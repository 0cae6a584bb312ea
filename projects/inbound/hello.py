"""HELLO: accept or refuse a connection, fence the one before it, and bring both sides' view of every session together."""

import json
import logging
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from controller_client.protocol.limits import CONNECTION_WINDOW_BYTES, SESSION_WINDOW_BYTES, SUPPORTED_VERSIONS
from controller_client.protocol.messages import Hello, SessionDirective, SessionSummary, StreamOffset, Welcome
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects import clock
from projects.audit_log import audit
from projects.conf import conf
from projects.database import in_database
from projects.dispatch import START_TYPES, as_parameter, as_time, time_as_parameter
from projects.errors import StorageUnavailable
from projects.inbound.ending import end_session, ending_session
from projects.inbound.leases import is_past, lease_end
from projects.inbound.refusals import AwaitsApproval, Revoked, SecondInstance, VersionUnsupported
from projects.inbound.stored_text import stored_list, stored_text
from projects.models import CommandSession, Controller, ControllerCommand

logger = logging.getLogger(__name__)

MAX_CAPABILITIES: Final = 64

# After a restart of the server all its hosts say HELLO within a minute: what every one of them costs is written out, past the ORM.
_FIND: Final = """
SELECT project_id, name, instance_id, boot_id, previous_boot_id, lease_expires_at, awaits_approval_since
FROM projects_controller WHERE id = %s AND revoked_at IS NULL
"""
# Read once the controller is locked: a revocation that was waited for is seen.
_CREDENTIAL: Final = "SELECT instance_id, revoked_at, expires_at FROM projects_controllercredential WHERE id = %s"
_CLAIM: Final = "UPDATE projects_controllercredential SET instance_id = %s WHERE id = %s AND instance_id = ''"
_TAKE_OVER: Final = """
UPDATE projects_controller
SET epoch = epoch + 1, instance_id = %s, boot_id = %s, previous_boot_id = %s, connected_credential_id = %s, lease_expires_at = %s,
    client_version = %s, os = %s, platform = %s, hostname = %s, capabilities = %s
WHERE id = %s RETURNING epoch
"""
_LIVE: Final = "SELECT id, state FROM projects_commandsession WHERE controller_id = %s AND state IN (%s, %s) ORDER BY id"


class _Found(NamedTuple):
    """A controller as it was before the HELLO; ``owner`` is the instance that showed its credential first."""

    id: UUID
    project_id: UUID
    name: str
    instance_id: str
    boot_id: str
    previous_boot_id: str
    lease_expires_at: datetime | None
    owner: str = ""


def hello(controller_id: UUID, message: Hello, credential_id: UUID | None = None) -> tuple[Welcome, list[str]]:
    """The WELCOME of a new connection (its ``epoch`` is the connection's), and the ids of sessions found lost.

    Raises VersionUnsupported, Revoked, AwaitsApproval, or SecondInstance: while another daemon's lease runs, and for what is a copy of its
    credential.
    """
    if not set(message.versions) & set(SUPPORTED_VERSIONS):
        raise VersionUnsupported(SUPPORTED_VERSIONS)
    with transaction.atomic():
        controller = _locked(controller_id, credential_id)
        alarm = _suspicion(controller, message)
        if alarm:
            _raise_alarm(controller, message, alarm)
        else:
            epoch = _take_over(controller, message, credential_id)
            lost = _reconcile(controller, message)
            directives = _directives(controller, message.sessions)
    # Outside: the refusal must not roll its audit row back.
    if alarm:
        raise SecondInstance(alarm)
    return (
        Welcome(
            epoch=epoch,
            heartbeat_seconds=conf.heartbeat_seconds,
            lease_seconds=conf.lease_seconds,
            session_window_bytes=SESSION_WINDOW_BYTES,
            connection_window_bytes=CONNECTION_WINDOW_BYTES,
            sessions=directives,
        ),
        lost,
    )


def _locked(controller_id: UUID, credential_id: UUID | None) -> _Found:
    """The controller, its row locked where rows are. Raises Revoked or AwaitsApproval."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND + _lock_clause(), [as_parameter(controller_id)])
        row = cursor.fetchone()
        if row is None:
            raise Revoked
        project_id, name, instance_id, boot_id, previous_boot_id, lease_expires_at, awaits_approval_since = row
        ids = (controller_id, UUID(str(project_id)))
        found = _Found(*ids, name, instance_id, boot_id, previous_boot_id, as_time(lease_expires_at))
        if credential_id is not None:
            cursor.execute(_CREDENTIAL, [as_parameter(credential_id)])
            credential = cursor.fetchone()
            if credential is None or credential[1] is not None or is_past(as_time(credential[2])):
                raise Revoked
            found = found._replace(owner=credential[0])
    if awaits_approval_since is not None:
        raise AwaitsApproval
    return found


def _lock_clause() -> str:
    return " FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""


async def violation_recorded(controller_id: UUID, code: str) -> None:
    """A connection is closed because its peer broke the protocol: puts that on record, or into the log if the database is away."""
    try:
        await in_database(_record_violation, controller_id, code)
    except StorageUnavailable:
        logger.error("a protocol violation of controller %s could not be recorded", controller_id)


def _record_violation(controller_id: UUID, code: str) -> None:
    controller = Controller.objects.filter(id=controller_id).first()
    if controller is not None:
        _audit(controller, "controller.protocol_violation", {"code": code})


def _suspicion(controller: _Found, message: Hello) -> str:
    """Why this looks like a copy of the credential; empty if it does not. A daemon that comes back is the same instance."""
    instance_id, boot_id = stored_text(message.instance_id, 64), stored_text(message.boot_id, 64)
    is_live = controller.lease_expires_at is not None and controller.lease_expires_at > clock.now()
    if is_live and controller.instance_id not in ("", instance_id):
        return "another daemon is connected as this controller; its lease must run out first"
    if controller.owner not in ("", instance_id):
        return "this credential belongs to another daemon, which showed it first; enrol this host on its own"
    if boot_id == controller.previous_boot_id and boot_id not in ("", controller.boot_id):
        return "a host does not return to a boot from before its last one: this is a copy of another machine, or that one is"
    return ""


def _raise_alarm(controller: _Found, message: Hello, alarm: str) -> None:
    hostname = stored_text(message.hostname, 255)
    Controller.objects.filter(id=controller.id).update(alarmed_at=clock.now(), alarm=f"{hostname}: {alarm}"[:512])
    _audit(controller, "controller.second_instance", {"hostname": hostname, "reason": alarm})
    logger.critical("ALARM: a daemon was refused as controller %s: %s", controller.id, alarm)


def _take_over(controller: _Found, message: Hello, credential_id: UUID | None) -> int:
    instance_id, boot_id = stored_text(message.instance_id, 64), stored_text(message.boot_id, 64)
    values = [
        instance_id,
        boot_id,
        controller.previous_boot_id if boot_id == controller.boot_id else controller.boot_id,
        None if credential_id is None else as_parameter(credential_id),
        time_as_parameter(lease_end()),
        stored_text(message.client_version, 32),
        stored_text(message.os, 32),
        stored_text(message.platform, 128),
        stored_text(message.hostname, 255),
        json.dumps(stored_list(message.capabilities, MAX_CAPABILITIES, 64)),
        as_parameter(controller.id),
    ]
    with connection.cursor() as cursor:
        if credential_id is not None and not controller.owner:
            cursor.execute(_CLAIM, [instance_id, as_parameter(credential_id)])
        cursor.execute(_TAKE_OVER, values)
        epoch: int = cursor.fetchone()[0]
    _audit(controller, "controller.connect", {"epoch": epoch})
    return epoch


def _reconcile(controller: _Found, message: Hello) -> list[str]:
    """Ends what ran and is not on the host any more, takes up what was begun there. Returns the ids of sessions that are lost."""
    is_rebooted = controller.boot_id not in ("", stored_text(message.boot_id, 64))
    summary_of = {summary.session_id: summary for summary in message.sessions}
    with connection.cursor() as cursor:
        states = [SessionState.RUNNING.value, SessionState.SENT.value]
        cursor.execute(_LIVE + _lock_clause(), [as_parameter(controller.id), *states])
        live = [(UUID(str(row[0])), row[1]) for row in cursor.fetchall()]
    lost = []
    for session_id, state in live:
        summary = summary_of.get(str(session_id))
        if state == SessionState.SENT:
            _adopt_started(session_id, summary)
        elif summary is None or (is_rebooted and summary.state != "done"):
            _end_lost(controller, session_id, is_rebooted=is_rebooted)
            lost.append(str(session_id))
    return lost


def _end_lost(controller: _Found, session_id: UUID, *, is_rebooted: bool) -> None:
    """A program that ran and is not on the host any more, or ran before it booted."""
    session = ending_session(session_id)
    note = "the host was rebooted" if is_rebooted else "the host no longer knows the session"
    end_session(
        session,
        SessionState.LOST,
        actor=f"controller:{controller.name}",
        end_reason="lost",
        ended_by="host",
        notes=[*session.notes, note],
    )


def _adopt_started(session_id: UUID, summary: SessionSummary | None) -> None:
    """A host has a session whose STARTED was lost with its connection: its START must neither expire nor be repeated."""
    if summary is None:
        return
    now = clock.now()
    starts = ControllerCommand.objects.filter(session_id=session_id, type__in=START_TYPES, settled_at__isnull=True)
    starts.update(settled_at=now, body=None)
    if summary.state == "running":
        CommandSession.objects.filter(id=session_id).update(state=SessionState.RUNNING, pid=summary.pid, started_at=now)


def _directives(controller: _Found, summaries: list[SessionSummary]) -> list[SessionDirective]:
    wanted = [session_id for summary in summaries if (session_id := _parsed(summary.session_id)) is not None]
    known = CommandSession.objects.filter(controller_id=controller.id, id__in=wanted) if wanted else ()
    session_of = {str(session.id): session for session in known}
    return [_directive(summary, session_of.get(summary.session_id)) for summary in summaries]


def _directive(summary: SessionSummary, session: CommandSession | None) -> SessionDirective:
    """What the host is to do with a session. One the server never had, or has already given up, must not go on running."""
    if session is None:
        return SessionDirective(session_id=summary.session_id, action="terminate" if summary.state == "running" else "forget")
    is_unwanted = session.state not in ACTIVE_STATES and summary.state == "running"
    expected = [StreamOffset(session_id=summary.session_id, stream="stdout", offset=session.stdout_next_offset)]
    # The host knows better: the STARTED that said pipes instead of a terminal may have been lost.
    has_stderr = any(position.stream == "stderr" for position in summary.streams)
    if has_stderr or session.io_mode == CommandSession.IoModeChoice.PIPE:
        expected.append(StreamOffset(session_id=summary.session_id, stream="stderr", offset=session.stderr_next_offset))
    return SessionDirective(session_id=summary.session_id, action="terminate" if is_unwanted else "continue", expected=expected)


def _parsed(session_id: str) -> UUID | None:
    try:
        return UUID(session_id)
    except ValueError:
        return None


def _audit(controller: Controller | _Found, action: str, detail: dict[str, Any]) -> None:
    audit(f"controller:{controller.name}", action, (controller.project_id, controller.id, None), detail)
