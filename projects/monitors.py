"""Monitors of log files on hosts: start, read what is new, stop. A monitor is a row; only a call makes anybody look at the file.

A read asks the host for what comes after the row's place, then stores it and moves the row on in one transaction, then answers. So a server
or a daemon that dies in between has read nothing; a reply that was lost after it is given again to a repeat of its ``request_id``.
"""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from controller_client.protocol.messages import DeleteFile, Failure, FileChunk, FilePlace, ReadFile
from projects import monitor_log, selectors
from projects.audit_log import audit
from projects.authentication import Caller
from projects.conf import conf
from projects.database import in_database
from projects.digest import Digest, Digester
from projects.errors import InvalidArgument, SessionNotFound, Unavailable
from projects.file_questions import delete_file, read_file
from projects.models import Monitor, Project
from projects.monitor_errors import (
    FileNotReadable,
    FileReadError,
    HostTooOld,
    InvalidSessionId,
    LogNotFound,
    MonitorLimitReached,
    PathNotAllowed,
    SessionAlreadyExists,
)
from projects.session_actions import actor_of
from projects.watching import clamped

DELETE_SCOPE: Final = "monitor:delete"
MAX_METADATA_CHARS: Final = 8192
MAX_PATH_CHARS: Final = 4096
# A digest goes through as much of the log in one call; what is left is for the next.
DIGEST_BYTES: Final = 1024 * 1024
# So many files that had the name before are still looked at.
FORMER_FILES: Final = 16


@dataclass(frozen=True, kw_only=True)
class MonitorStatus:
    """A monitor that was started."""

    session_id: UUID
    status: str
    file_position: int
    start_time: datetime
    log_file: str


@dataclass(frozen=True, kw_only=True)
class MonitorUpdate:
    """``data`` is ``[offset, next_offset)`` of all that the monitor read, and ends at ``file_position`` of the file.

    ``reset``: it begins another file, or a file that was cut. ``gap``: what was before it is not shown, ``lost_bytes`` where that is known.
    ``late``: it was written to a file that had been rotated away and read to its end; ``file_position`` stays.
    """

    session_id: UUID
    data: bytes
    file_position: int
    has_more: bool
    offset: int
    next_offset: int
    reset: str | None = None
    gap: str | None = None
    lost_bytes: int | None = None
    late: bool = False
    digest: Digest | None = None


@dataclass(frozen=True, kw_only=True)
class MonitorEnd:
    """A monitor that was stopped. ``log_kept_reason`` says why the log is still there; None: it is deleted."""

    session_id: UUID
    status: str
    total_bytes_processed: int
    session_duration_seconds: float
    log_deleted: bool
    log_kept_reason: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """An active monitor's row, as a read needs it."""

    monitor_id: int
    controller_id: UUID
    session_id: UUID
    path: str
    identity: str
    mark: str
    position: int
    former: list[tuple[str, str, int]]
    next_offset: int
    version: int

    def question(self, wait_seconds: float) -> ReadFile:
        """What comes next?"""
        return ReadFile(
            path=self.path,
            identity=self.identity,
            mark=self.mark,
            position=self.position,
            wait_seconds=wait_seconds,
            former=[FilePlace(identity=identity, mark=mark, position=position) for identity, mark, position in self.former],
        )

    def after(self, chunk: FileChunk) -> dict[str, Any]:
        """The columns of the row once this was read."""
        end = chunk.position + len(chunk.data)
        if chunk.late:
            moved = [(chunk.identity, chunk.mark, end) if file[0] == chunk.identity else file for file in self.former]
            return {"file_former": moved}
        former = self.former
        if chunk.reset == "rotated" and chunk.identity != self.identity:
            # An identity that is in use again is no former one any more.
            kept = [file for file in former if file[0] not in {self.identity, chunk.identity}]
            former = [*kept, (self.identity, self.mark, self.position)][-FORMER_FILES:]
        return {"file_identity": chunk.identity, "file_mark": chunk.mark, "file_position": end, "file_former": former}


# ---- start ---------------------------------------------------------------------------------------------------------------


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
) -> MonitorStatus:
    """Starts a monitor at the beginning of the file, or at its end.

    Raises InvalidSessionId, SessionAlreadyExists, MonitorLimitReached, LogNotFound, FileNotReadable, PathNotAllowed, and what hosts raise.
    """
    wanted = _uuid_of(session_id)
    if wanted is None:
        raise InvalidSessionId
    _check_texts(log_file, metadata or {})
    host = await in_database(_host_for_new, project_id, wanted, controller)
    chunk = await read_file(host, ReadFile(path=log_file, position=None if at_end else 0, max_bytes=0))
    if chunk.failure is not None:
        raise _start_error(chunk.failure, log_file)
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
    )
    await in_database(_create, new)
    return MonitorStatus(
        session_id=wanted, status=new.status, file_position=new.file_position, start_time=new.started_at, log_file=new.log_file
    )


def _uuid_of(text: str) -> UUID | None:
    """Only as S2's pattern has it: lower case, with its dashes."""
    try:
        parsed = UUID(text)
    except ValueError:
        return None
    return parsed if str(parsed) == text else None


def _check_texts(log_file: str, metadata: dict[str, str]) -> None:
    if not _is_storable(log_file) or len(log_file) > MAX_PATH_CHARS:
        raise PathNotAllowed
    texts = [*metadata.keys(), *metadata.values()]
    if not all(map(_is_storable, texts)) or sum(map(len, texts)) > MAX_METADATA_CHARS:
        raise InvalidArgument([f"metadata: must be texts without NUL, of at most {MAX_METADATA_CHARS} characters in all"])


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _host_for_new(project_id: UUID, session_id: UUID, controller: str | None) -> UUID:
    if _active(project_id, session_id).exists():
        raise SessionAlreadyExists(session_id)
    _check_limit(project_id)
    return selectors.controller_for(project_id, controller).id


def _check_limit(project_id: UUID) -> None:
    active = Monitor.objects.filter(project_id=project_id, status=Monitor.Status.ACTIVE)
    if active.count() >= conf.max_monitors:
        raise MonitorLimitReached(conf.max_monitors, active.order_by("started_at").values_list("session_id", flat=True).first())


def _create(new: Monitor) -> None:
    try:
        with transaction.atomic():
            # One after the other, so that none of those who start at once goes beyond the limit.
            Project.objects.select_for_update(no_key=True).filter(id=new.project_id).first()
            _check_limit(new.project_id)
            new.save(force_insert=True)
            detail = {"log_file": new.log_file, "session_type": new.session_type}
            audit(new.started_by, "monitor.start", (new.project_id, new.controller_id, new.session_id), detail)
    except IntegrityError:
        raise SessionAlreadyExists(new.session_id) from None


def _active(project_id: UUID, session_id: UUID) -> QuerySet[Monitor]:
    return Monitor.objects.filter(project_id=project_id, session_id=session_id, status=Monitor.Status.ACTIVE)


def _start_error(failure: Failure, path: str) -> Exception:
    match failure.code:
        case "FILE_NOT_FOUND":
            return LogNotFound(path)
        case "FILE_NOT_READABLE":
            return FileNotReadable(path)
        case "PATH_NOT_ALLOWED":
            return PathNotAllowed()
    return FileReadError()


# ---- read ----------------------------------------------------------------------------------------------------------------


async def monitor_read(
    project_id: UUID, session_id: str, *, wait_seconds: float = 0.0, request_id: UUID | None = None, is_digest: bool = False
) -> MonitorUpdate:
    """What came since the last read, at most a chunk; while there is nothing, waits up to ``wait_seconds`` for some.

    ``is_digest``: what came in short, of several chunks. A repeat with the ``request_id`` of the last read gets the same again. Raises
    SessionNotFound, FileReadError, PathNotAllowed, and what hosts raise.
    """
    wanted = _uuid_of(session_id)
    if wanted is None:
        raise SessionNotFound(session_id[:64])
    update, is_repeat = await _read(project_id, wanted, wait_seconds, request_id)
    first = update
    while is_digest and not is_repeat and update.has_more and update.next_offset - first.offset < DIGEST_BYTES:
        more, _ = await _read(project_id, wanted, 0.0, request_id, since=first.offset)
        if not more.data or more.offset != update.next_offset:
            break
        update = replace(
            more,
            data=update.data + more.data,
            offset=first.offset,
            reset=more.reset or update.reset,
            gap=more.gap or update.gap,
            late=more.late or update.late,
        )
    return replace(update, digest=await asyncio.to_thread(_digest_of, update)) if is_digest else update


async def _read(
    project_id: UUID, session_id: UUID, wait_seconds: float, request_id: UUID | None, *, since: int | None = None
) -> tuple[MonitorUpdate, bool]:
    """(what is new, whether it is the last reply once more). ``since``: this read goes on with the reply that began there."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + clamped(wait_seconds)
    while True:
        # Looked at each time: the call that this one repeats may still be under way.
        place, repeated = await in_database(_look, project_id, session_id, request_id if since is None else None)
        if repeated is not None:
            return repeated, True
        left = max(0.0, deadline - loop.time())
        chunk = await read_file(place.controller_id, place.question(left))
        if chunk.failure is not None:
            raise PathNotAllowed if chunk.failure.code == "PATH_NOT_ALLOWED" else FileReadError
        update = await in_database(_advance, place, chunk, request_id, since)
        if update is not None:
            return update, False


def _look(project_id: UUID, session_id: UUID, request_id: UUID | None) -> tuple[_Place, MonitorUpdate | None]:
    # In this order: a reply that is given after the place was looked at makes the place's version an old one.
    place = _place_of(project_id, session_id)
    return place, None if request_id is None else _repeated(project_id, session_id, request_id)


def _place_of(project_id: UUID, session_id: UUID) -> _Place:
    place = ("file_identity", "file_mark", "file_position", "file_former", "next_offset", "version")
    row = _active(project_id, session_id).values_list("id", "controller_id", "session_id", "log_file", *place).first()
    if row is None:
        raise SessionNotFound(session_id)
    return _Place(*row)


def _repeated(project_id: UUID, session_id: UUID, request_id: UUID) -> MonitorUpdate | None:
    """The last reply once more, if it was to this request."""
    monitor = _active(project_id, session_id).filter(request_id=request_id).first()
    if monitor is None:
        return None
    data = b"".join(monitor_log.pieces(monitor.id, monitor.shown_from, monitor.shown_to))
    return MonitorUpdate(session_id=session_id, data=data, offset=monitor.shown_from, next_offset=monitor.shown_to, **monitor.shown_event)


@transaction.atomic
def _advance(place: _Place, chunk: FileChunk, request_id: UUID | None, since: int | None) -> MonitorUpdate | None:
    """Moves the monitor on; None if another read of the same place was first, or it was stopped."""
    end = place.next_offset + len(chunk.data)
    columns = place.after(chunk)
    event: dict[str, Any] = {
        "file_position": columns.get("file_position", place.position),
        "has_more": chunk.has_more,
        "reset": chunk.reset,
        "gap": chunk.gap,
        "lost_bytes": chunk.gap_bytes,
        "late": chunk.late,
    }
    update = MonitorUpdate(session_id=place.session_id, data=chunk.data, offset=place.next_offset, next_offset=end, **event)
    if not chunk.data and chunk.reset is None and chunk.gap is None:
        # Nothing came: nothing is written, so that asking often costs little.
        return update
    moved = Monitor.objects.filter(id=place.monitor_id, version=place.version, status=Monitor.Status.ACTIVE).update(
        **columns,
        next_offset=end,
        version=F("version") + 1,
        shown_from=place.next_offset if since is None else since,
        shown_to=end,
        shown_event=event,
        request_id=request_id,
        read_at=timezone.now(),
    )
    if not moved:
        return None
    monitor_log.append(place.monitor_id, place.next_offset, chunk.data)
    return update


def _digest_of(update: MonitorUpdate) -> Digest:
    digester = Digester(update.offset)
    digester.feed(update.data)
    return digester.digest()


# ---- stop ----------------------------------------------------------------------------------------------------------------


async def monitor_stop(project_id: UUID, session_id: str, *, caller: Caller | None = None, save_log: bool = False) -> MonitorEnd:
    """Stops a monitor, and deletes its log unless ``save_log``: if the host counts it among the session logs, and the caller may.

    Stopping succeeds whatever becomes of the log, and without the host. Raises SessionNotFound.
    """
    wanted = _uuid_of(session_id)
    if wanted is None:
        raise SessionNotFound(session_id[:64])
    place = await in_database(_place_of, project_id, wanted)
    reason = await _delete_log(project_id, place, caller, save_log=save_log)
    return await in_database(_stop, project_id, place, actor_of(caller), reason, save_log)


async def _delete_log(project_id: UUID, place: _Place, caller: Caller | None, *, save_log: bool) -> str | None:
    """Why the log is still there; None: it is deleted."""
    if save_log:
        return "save_log"
    if caller is not None and not caller.may(DELETE_SCOPE):
        return "scope_missing"
    await in_database(partial(_audit, project_id, place, actor_of(caller), "monitor.delete_log", {"log_file": place.path}))
    try:
        answer = await delete_file(place.controller_id, DeleteFile(path=place.path, identity=place.identity))
    except (Unavailable, HostTooOld) as error:
        return error.code.lower()
    return answer.failure.code.lower()[:32] if answer.failure is not None else None


def _audit(project_id: UUID, place: _Place, actor: str, action: str, detail: dict[str, Any]) -> None:
    audit(actor, action, (project_id, place.controller_id, place.session_id), detail)


@transaction.atomic
def _stop(project_id: UUID, place: _Place, actor: str, reason: str | None, save_log: bool) -> MonitorEnd:
    now = timezone.now()
    stopped = Monitor.objects.filter(id=place.monitor_id, status=Monitor.Status.ACTIVE).update(
        status=Monitor.Status.STOPPED,
        stopped_by=actor,
        stopped_at=now,
        log_deleted=None if save_log else reason is None,
        log_kept_reason=reason or "",
    )
    if not stopped:
        raise SessionNotFound(place.session_id)
    _audit(project_id, place, actor, "monitor.stop", {"log_deleted": reason is None, "log_kept_reason": reason})
    monitor = Monitor.objects.get(id=place.monitor_id)
    return MonitorEnd(
        session_id=place.session_id,
        status=monitor.status,
        total_bytes_processed=monitor.next_offset,
        session_duration_seconds=max((now - monitor.started_at).total_seconds(), 1e-6),
        log_deleted=reason is None,
        log_kept_reason=reason,
    )
