"""Stops monitors, and deletes the logs that hosts count among their session logs."""

from typing import Final, Literal
from uuid import UUID

from django.db import transaction
from pydantic import Field

from controller_client.protocol.messages import DeleteFile
from projects.accounts.authentication import Caller
from projects.audit.log import audit
from projects.errors.hosts import ControllerOffline, ControllerRevoked
from projects.models import Monitor
from projects.monitors.errors import HostSilent, HostTooOld, MonitorNotFound
from projects.monitors.place import Place, monitor_id_of, place_of
from projects.monitors.questions import delete_file
from projects.output.result import Result
from projects.sessions.idempotency import Request, request_for
from projects.sessions.transactions import permits
from projects.sessions.transactions.acting import actor_of, require_cleared
from projects.storage import clock
from projects.storage.access import in_database

DELETE_SCOPE: Final = "monitor:delete"
_DELETE_FAILED: Final = "delete_failed"
_REASONS_OF_HOSTS: Final = frozenset(
    {"not_managed", "not_owned", "other_file", "file_not_found", _DELETE_FAILED}
)
"""Why a host keeps a log. A host may say anything; every other word means that it failed."""


class MonitorEnd(Result):
    """A monitor as it was stopped. ``log_kept_reason`` is None if the log was deleted."""

    session_id: str
    status: Literal["stopped"]
    total_bytes_processed: int
    session_duration_seconds: float
    log_deleted: bool
    log_kept_reason: str | None = Field(
        description=(
            "Why the log stays: save_log, not_managed (only recordings in the host's directory of "
            "session logs are deleted), scope_missing"
            " (needs monitor:delete), not_owned, other_file, file_not_found, controller_offline, "
            "host_silent, host_too_old, controller_revoked, delete_failed."
        )
    )


async def monitor_stop(
    project_id: UUID,
    session_id: str,
    *,
    caller: Caller | None = None,
    save_log: bool = False,
    request_id: UUID | None = None,
) -> MonitorEnd:
    """Stops a monitor, and deletes its log if the caller may and the host counts it as its own.

    The monitor is stopped whatever the host makes of the log, and while it is away. Where storage
    fails nothing is stopped. A repeat may find the log deleted already: ``file_not_found``.

    Args:
        project_id: the caller's project.
        session_id: the id that the monitor was started with.
        caller: who stops the monitor; None for the server itself.
        save_log: keep the log.
        request_id: a retry with the same id gets the first answer again.

    Raises:
        MonitorNotFound: if the project has no active monitor of this id.
        RequestIdReused: if ``request_id`` was used for another call.
        ChangedSinceApproval: if the monitor follows another log than the one that was approved.
        StorageUnavailable: if the database cannot be used; the monitor goes on.

    """
    require_cleared(caller)
    wanted = monitor_id_of(session_id)
    request = request_for(
        project_id, request_id, "monitor.stop", {"session_id": session_id, "save_log": save_log}
    )
    if request and (earlier := await in_database(request.earlier_answer, MonitorEnd)):
        return earlier
    place = await in_database(place_of, project_id, wanted)
    permits.check_log(caller, place.controller_id, place.path)
    reason = "save_log" if save_log else await _delete_log(place, caller)
    return await in_database(_stop, place, actor_of(caller), reason, save_log, request)


async def _delete_log(place: Place, caller: Caller | None) -> str | None:
    """Has the host delete the log. Returns why the log was kept; None if it was deleted."""
    if caller is not None and not caller.may(DELETE_SCOPE):
        return "scope_missing"
    # Audited before the host is asked: an answer that is lost leaves no deletion without a row.
    detail = {"log_file": place.path}
    await in_database(audit, actor_of(caller), "monitor.delete_log", place.about, detail)
    question = DeleteFile(path=place.path, identity=place.identity)
    try:
        answer = await delete_file(place.controller_id, question)
    except (ControllerRevoked, ControllerOffline, HostSilent, HostTooOld) as error:
        return error.code.lower()
    if answer.failure is None:
        return None
    reason = answer.failure.code.lower()
    return reason if reason in _REASONS_OF_HOSTS else _DELETE_FAILED


@transaction.atomic
def _stop(
    place: Place, actor: str, reason: str | None, save_log: bool, request: Request | None
) -> MonitorEnd:
    now = clock.now()
    stopped = Monitor.objects.filter(id=place.monitor_id, status=Monitor.Status.ACTIVE).update(
        status=Monitor.Status.STOPPED,
        stopped_by=actor,
        stopped_at=now,
        log_deleted=None if save_log else reason is None,
        log_kept_reason=reason or "",
    )
    if not stopped:
        # Another call with this request_id may have stopped the monitor by now.
        if request and (earlier := request.earlier_answer(MonitorEnd)):
            return earlier
        raise MonitorNotFound(place.session_id)
    monitor = Monitor.objects.get(id=place.monitor_id)
    detail = {"log_deleted": reason is None, "log_kept_reason": reason}
    audit(actor, "monitor.stop", place.about, detail)
    ended = MonitorEnd(
        session_id=str(place.session_id),
        status="stopped",
        total_bytes_processed=monitor.next_offset,
        session_duration_seconds=max((now - monitor.started_at).total_seconds(), 1e-6),
        log_deleted=reason is None,
        log_kept_reason=reason,
    )
    if request is not None:
        request.record_answer(monitor.id, ended)
    return ended
