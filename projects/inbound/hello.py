"""HELLO: accept or refuse a connection, fence the one before it, and bring both sides' view of every session together."""

import logging
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from controller_client.protocol.limits import CONNECTION_WINDOW_BYTES, SESSION_WINDOW_BYTES, SUPPORTED_VERSIONS
from controller_client.protocol.messages import Hello, SessionDirective, SessionSummary, StreamOffset, Welcome
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.audit_log import audit
from projects.authentication import is_controller_credential_valid
from projects.conf import conf
from projects.database import in_database
from projects.dispatch import START_TYPES, as_parameter, as_time, time_as_parameter
from projects.errors import StorageUnavailable
from projects.inbound.ending import end_session
from projects.inbound.refusals import AwaitsApproval, Fenced, Revoked, SecondInstance, VersionUnsupported
from projects.inbound.stored_text import stored_list, stored_text
from projects.models import CommandSession, Controller, ControllerCredential

logger = logging.getLogger(__name__)

MAX_CAPABILITIES: Final = 64
# Every few seconds for every controller: one statement, past the ORM.
_RENEW: Final = """
UPDATE projects_controller SET lease_expires_at = %s WHERE id = %s AND epoch = %s AND revoked_at IS NULL AND EXISTS (
    SELECT 1 FROM projects_controllercredential WHERE id = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %s)
)
"""


def hello(controller_id: UUID, message: Hello, credential_id: UUID | None = None) -> tuple[Welcome, list[str]]:
    """The WELCOME of a new connection (its ``epoch`` is the connection's), and the ids of sessions found lost.

    Raises VersionUnsupported, Revoked, AwaitsApproval, or SecondInstance: while another daemon's lease runs, and for what is a copy of its
    credential.
    """
    if not set(message.versions) & set(SUPPORTED_VERSIONS):
        raise VersionUnsupported(SUPPORTED_VERSIONS)
    with transaction.atomic():
        controller = Controller.objects.select_for_update(no_key=True).filter(id=controller_id, revoked_at__isnull=True).first()
        if controller is None or (credential_id is not None and not is_controller_credential_valid(credential_id)):
            raise Revoked
        if controller.awaits_approval_since is not None:
            raise AwaitsApproval
        alarm = _suspicion(controller, message, credential_id)
        if alarm:
            _raise_alarm(controller, message, alarm)
        else:
            epoch = _take_over(controller, message, credential_id)
            lost = _end_missing(controller, message)
            _adopt_started(controller, message.sessions)
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


def heartbeat(controller_id: UUID, epoch: int, credential_id: UUID) -> None:
    """Renews the lease of a connection that showed a sign of life. Raises Revoked, or Fenced when a newer one took over."""
    keys, now = (as_parameter(controller_id), epoch, as_parameter(credential_id)), time_as_parameter(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(_RENEW, [time_as_parameter(_lease_end()), *keys, now])
        is_renewed = cursor.rowcount == 1
    if not is_renewed:
        check_standing(controller_id, epoch, credential_id)
        raise Fenced


_STANDING: Final = """
SELECT c.epoch, c.revoked_at, k.revoked_at, k.expires_at
FROM projects_controller c JOIN projects_controllercredential k ON k.controller_id = c.id AND k.id = %s WHERE c.id = %s
"""


def check_standing(controller_id: UUID, epoch: int, credential_id: UUID) -> None:
    """Raises as ``heartbeat`` does, and writes nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, [as_parameter(credential_id), as_parameter(controller_id)])
        row = cursor.fetchone()
    expires_at = None if row is None else as_time(row[3])
    if row is None or row[1] is not None or row[2] is not None or (expires_at is not None and expires_at <= timezone.now()):
        raise Revoked
    if row[0] != epoch:
        raise Fenced


def release_lease(controller_id: UUID, epoch: int) -> None:
    """The daemon said that it goes: it is offline now, not when its lease runs out."""
    Controller.objects.filter(id=controller_id, epoch=epoch).update(lease_expires_at=timezone.now())


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


def _lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=conf.lease_seconds)


def _suspicion(controller: Controller, message: Hello, credential_id: UUID | None) -> str:
    """Why this looks like a copy of the credential; empty if it does not. A daemon that comes back is the same instance."""
    instance_id, boot_id = stored_text(message.instance_id, 64), stored_text(message.boot_id, 64)
    is_live = controller.lease_expires_at is not None and controller.lease_expires_at > timezone.now()
    if is_live and controller.instance_id not in ("", instance_id):
        return "another daemon is connected as this controller; its lease must run out first"
    if credential_id is not None and _owner_of(credential_id) not in ("", instance_id):
        return "this credential belongs to another daemon, which showed it first; enrol this host on its own"
    if boot_id == controller.previous_boot_id and boot_id not in ("", controller.boot_id):
        return "a host does not return to a boot from before its last one: this is a copy of another machine, or that one is"
    return ""


def _owner_of(credential_id: UUID) -> str:
    """The instance that showed the credential first."""
    return ControllerCredential.objects.values_list("instance_id", flat=True).get(id=credential_id)


def _raise_alarm(controller: Controller, message: Hello, alarm: str) -> None:
    hostname = stored_text(message.hostname, 255)
    Controller.objects.filter(id=controller.id).update(alarmed_at=timezone.now(), alarm=f"{hostname}: {alarm}"[:512])
    _audit(controller, "controller.second_instance", {"hostname": hostname, "reason": alarm})
    logger.critical("ALARM: a daemon was refused as controller %s: %s", controller.id, alarm)


def _take_over(controller: Controller, message: Hello, credential_id: UUID | None) -> int:
    instance_id, boot_id = stored_text(message.instance_id, 64), stored_text(message.boot_id, 64)
    if credential_id is not None:
        ControllerCredential.objects.filter(id=credential_id, instance_id="").update(instance_id=instance_id)
    Controller.objects.filter(id=controller.id).update(
        epoch=F("epoch") + 1,
        instance_id=instance_id,
        boot_id=boot_id,
        previous_boot_id=controller.previous_boot_id if boot_id == controller.boot_id else controller.boot_id,
        connected_credential_id=credential_id,
        lease_expires_at=_lease_end(),
        client_version=stored_text(message.client_version, 32),
        os=stored_text(message.os, 32),
        platform=stored_text(message.platform, 128),
        hostname=stored_text(message.hostname, 255),
        capabilities=stored_list(message.capabilities, MAX_CAPABILITIES, 64),
    )
    _audit(controller, "controller.connect", {"epoch": controller.epoch + 1})
    return controller.epoch + 1


def _end_missing(controller: Controller, message: Hello) -> list[str]:
    """Programs that ran and are not on the host any more, or ran before it booted: they are lost. Returns their ids."""
    is_rebooted = controller.boot_id not in ("", stored_text(message.boot_id, 64))
    survivors = {s.session_id for s in message.sessions if s.state == "done" or not is_rebooted}
    running = controller.sessions.select_for_update(no_key=True).filter(state=SessionState.RUNNING).order_by("id")
    lost = [session for session in running if str(session.id) not in survivors]
    for session in lost:
        note = "the host was rebooted" if is_rebooted else "the host no longer knows the session"
        end_session(
            session,
            SessionState.LOST,
            actor=f"controller:{controller.name}",
            end_reason="lost",
            ended_by="host",
            notes=[*session.notes, note],
        )
    return [str(session.id) for session in lost]


def _adopt_started(controller: Controller, summaries: list[SessionSummary]) -> None:
    """A host has sessions whose STARTED was lost with its connection: their START must neither expire nor be repeated."""
    summary_of = {summary.session_id: summary for summary in summaries}
    for session in controller.sessions.select_for_update(no_key=True).filter(state=SessionState.SENT).order_by("id"):
        summary = summary_of.get(str(session.id))
        if summary is None:
            continue
        now = timezone.now()
        session.commands.filter(type__in=START_TYPES, settled_at__isnull=True).update(settled_at=now, body=None)
        if summary.state == "running":
            CommandSession.objects.filter(id=session.id).update(state=SessionState.RUNNING, pid=summary.pid, started_at=now)


def _directives(controller: Controller, summaries: list[SessionSummary]) -> list[SessionDirective]:
    wanted = [session_id for summary in summaries if (session_id := _parsed(summary.session_id)) is not None]
    known = {str(session.id): session for session in controller.sessions.filter(id__in=wanted)}
    return [_directive(summary, known.get(summary.session_id)) for summary in summaries]


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


def _audit(controller: Controller, action: str, detail: dict[str, Any]) -> None:
    audit(f"controller:{controller.name}", action, (controller.project_id, controller.id, None), detail)
