"""Starts monitors of log files on hosts.

A monitor is a row. Nobody looks at its file until a caller reads: see ``projects.monitors.read``.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from django.db import IntegrityError, transaction

from controller_client.protocol.messages import Failure, ReadFile
from projects.accounts.authentication import Caller
from projects.audit.log import audit
from projects.conf import conf
from projects.errors.calls import InvalidArgument
from projects.models import Monitor, Project
from projects.monitors.errors import (
    FileNotReadable,
    InvalidSessionId,
    LogNotFound,
    MonitorLimitReached,
    SessionAlreadyExists,
)
from projects.monitors.place import active_monitors, parsed_id
from projects.monitors.questions import read_file
from projects.monitors.read import not_allowed, read_error
from projects.output.result import Result
from projects.sessions import selectors
from projects.sessions.idempotency import Request, request_for
from projects.sessions.transactions import permits
from projects.sessions.transactions.acting import actor_of, require_cleared
from projects.storage import clock
from projects.storage.access import in_database

MAX_METADATA_CHARS: Final = 8192
MAX_PATH_CHARS: Final = 4096


class MonitorStatus(Result):
    """A monitor as it was started, with the place where its first read begins."""

    session_id: str
    status: Literal["active", "stopped"]
    file_position: int
    start_time: datetime
    log_file: str


async def monitor_start(
    project_id: UUID,
    session_id: str,
    session_type: str,
    log_file: str,
    metadata: dict[str, str] | None = None,
    *,
    caller: Caller | None = None,
    controller: str | None = None,
    at_end: bool = False,
    request_id: UUID | None = None,
) -> MonitorStatus:
    """Starts a monitor of a log file.

    Args:
        project_id: the caller's project.
        session_id: the id that the caller chose for the monitor: a UUID in lower case.
        session_type: what writes the file, out of ``Monitor.Kind``.
        log_file: the absolute path on the host.
        metadata: texts of the caller's own, which lists show.
        caller: who starts the monitor; None for the server itself.
        controller: the name or id of the host; None if the project has one host.
        at_end: begin at the end of the file, not at its start.
        request_id: a retry with the same id gets the first answer again.

    Raises:
        InvalidSessionId, InvalidArgument: if an argument has not the form described.
        RequestIdReused: if ``request_id`` was used for another call.
        ChangedSinceApproval: if the host is another one than the one that was approved.
        SessionAlreadyExists: if the project has an active monitor of this id.
        MonitorLimitReached: if the project has as many active monitors as it may have.
        LogNotFound, FileNotReadable, FileReadError: if the host cannot read the file.
        PathNotAllowed, LogDirectoryUnusable, LogDirectoryForeign: if the host closed the path.
        ControllerRevoked, ControllerOffline, HostTooOld, HostSilent: if the host gives no answer.
        ControllerNotFound, ControllerAmbiguous, NoControllerEnrolled: if no host was found.

    """
    require_cleared(caller)
    wanted = parsed_id(session_id)
    if wanted is None:
        raise InvalidSessionId
    _check_metadata(metadata or {})
    request = request_for(
        project_id,
        request_id,
        "monitor.start",
        {
            "session_id": session_id,
            "session_type": session_type,
            "log_file": log_file,
            "metadata": metadata or {},
            "controller": controller,
            "at_end": at_end,
        },
    )
    if request and (earlier := await in_database(request.earlier_answer, MonitorStatus)):
        return earlier
    try:
        host = await in_database(_host_for_new, project_id, wanted, controller)
        permits.check_host(caller, host)
    except SessionAlreadyExists:
        # Another call with this request_id may have started the monitor by now.
        if request and (earlier := await in_database(request.earlier_answer, MonitorStatus)):
            return earlier
        raise
    if not _is_storable(log_file) or len(log_file) > MAX_PATH_CHARS:
        raise await in_database(not_allowed, host)
    chunk = await read_file(
        host, ReadFile(path=log_file, position=None if at_end else 0, max_bytes=0)
    )
    if chunk.failure is not None:
        raise await in_database(_start_error, chunk.failure, host, log_file)
    new = Monitor(
        project_id=project_id,
        controller_id=host,
        session_id=wanted,
        session_type=session_type,
        log_file=log_file,
        metadata=metadata or {},
        file_identity=chunk.identity,
        file_mark=chunk.mark,
        file_position=chunk.position,
        started_by=actor_of(caller),
        started_at=clock.now(),
    )
    return await in_database(_create, new, request)


def _check_metadata(metadata: Mapping[str, str]) -> None:
    texts = [*metadata.keys(), *metadata.values()]
    if not all(map(_is_storable, texts)) or sum(map(len, texts)) > MAX_METADATA_CHARS:
        rule = f"texts without NUL, of at most {MAX_METADATA_CHARS} characters in all"
        raise InvalidArgument([f"metadata: must be {rule}"])


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _host_for_new(project_id: UUID, session_id: UUID, controller: str | None) -> UUID:
    if active_monitors(project_id, session_id).exists():
        raise SessionAlreadyExists(session_id)
    _check_limit(project_id)
    return selectors.controller_for(project_id, controller).id


def _check_limit(project_id: UUID) -> None:
    active = Monitor.objects.filter(project_id=project_id, status=Monitor.Status.ACTIVE)
    if active.count() >= conf.max_monitors:
        raise MonitorLimitReached(
            conf.max_monitors,
            active.order_by("started_at").values_list("session_id", flat=True).first(),
        )


def _create(new: Monitor, request: Request | None) -> MonitorStatus:
    try:
        with transaction.atomic():
            # Starts of one project take this lock in turn. Two at once would both find room below
            # the limit, or start the same monitor twice.
            Project.objects.select_for_update(no_key=True).filter(id=new.project_id).first()
            if request and (earlier := request.earlier_answer(MonitorStatus)):
                return earlier
            _check_limit(new.project_id)
            new.save(force_insert=True)
            detail = {"log_file": new.log_file, "session_type": new.session_type}
            audit(
                new.started_by,
                "monitor.start",
                (new.project_id, new.controller_id, new.session_id),
                detail,
            )
            started = MonitorStatus(
                session_id=str(new.session_id),
                status="active",
                file_position=new.file_position,
                start_time=new.started_at,
                log_file=new.log_file,
            )
            if request is not None:
                request.record_answer(new.id, started)
            return started
    except IntegrityError:
        raise SessionAlreadyExists(new.session_id) from None


_START_ERRORS: Final = {"FILE_NOT_FOUND": LogNotFound, "FILE_NOT_READABLE": FileNotReadable}


def _start_error(failure: Failure, host: UUID, path: str) -> Exception:
    if (kind := _START_ERRORS.get(failure.code)) is not None:
        return kind(path)
    return read_error(failure, host)
