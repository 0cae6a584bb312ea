"""Reads of a monitor: ask the host what follows the monitor's place, store it, then answer.

Storing the bytes and moving the place on is one transaction. A server or a daemon that dies before
it has read nothing. A reply that was lost after it is given again to a retry with the same
``request_id``.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Final
from uuid import UUID

import msgspec
from django.db import transaction
from django.db.models import F

from controller_client.protocol.messages import Failure, FileChunk
from projects.models import Controller, Monitor
from projects.monitors import log as monitor_log
from projects.monitors.errors import (
    FileReadError,
    LogDirectoryForeign,
    LogDirectoryUnusable,
    PathNotAllowed,
)
from projects.monitors.place import Place, monitor_id_of, place_of
from projects.monitors.questions import read_file
from projects.output.digest import Digest, Digester
from projects.output.window_start import LOOK_BACK_BYTES, rest_of
from projects.sessions.waiting import clamped
from projects.storage import clock
from projects.storage.access import in_database

DIGEST_BYTES: Final = 1024 * 1024
"""How much of the log one digest covers. The next call digests the rest."""


@dataclass(frozen=True, kw_only=True)
class FileEvent:
    """The file as one reply found it. Stored as JSON, for a retry that gets the reply again.

    Attributes:
        file_position: the end of the reply in the file.
        has_more: the file goes on behind ``file_position``.
        reset: why the reply begins another file or a shortened one; None if it does not.
        gap: why bytes before the reply are not shown; None if none are missing.
        lost_bytes: the size of the gap, where it is known.
        late: the bytes were written to a file that had been rotated away and read to its end.
            ``file_position`` stays where it was.

    """

    file_position: int
    has_more: bool
    reset: str | None = None
    gap: str | None = None
    lost_bytes: int | None = None
    late: bool = False

    def after(self, earlier: "FileEvent") -> "FileEvent":
        """The event of one reply made of ``earlier`` and this one."""
        return replace(
            self,
            reset=self.reset or earlier.reset,
            gap=self.gap or earlier.gap,
            lost_bytes=_sum_of(event.lost_bytes for event in (earlier, self) if event.gap),
            late=self.late or earlier.late,
        )


def _sum_of(sizes: Iterable[int | None]) -> int | None:
    """The sum of the sizes; None if one is not known, or there are none."""
    known = list(sizes)
    return sum(size or 0 for size in known) if known and None not in known else None


@dataclass(frozen=True, kw_only=True)
class MonitorUpdate:
    """One reply of a monitor.

    Attributes:
        session_id: the id of the monitor.
        event: the file as this reply found it.
        data: the bytes ``[offset, next_offset)`` of all that the monitor has read.
        rest_bytes: how many bytes of ``data`` end a character or an escape sequence that an
            earlier read began.
        is_repeat: a retry gets this reply once more.
        digest: a summary of ``data``, if the caller asked for one.

    """

    session_id: UUID
    event: FileEvent
    data: bytes
    offset: int
    next_offset: int
    rest_bytes: int
    is_repeat: bool = False
    digest: Digest | None = None


class _MovedOnError(Exception):
    """Another read of the monitor came between two of this one."""


async def monitor_read(
    project_id: UUID,
    session_id: str,
    *,
    wait_seconds: float = 0.0,
    request_id: UUID | None = None,
    is_digest: bool = False,
) -> MonitorUpdate:
    """Reads what is new, at most one chunk, and waits up to ``wait_seconds`` for it.

    A digest covers several chunks, and has no bytes of its own for a caller.

    Args:
        project_id: the caller's project.
        session_id: the id that the monitor was started with.
        wait_seconds: how long to wait while there is nothing new.
        request_id: a retry with the id of the last read gets the same reply again.
        is_digest: summarise what is new instead of giving it in full.

    Raises:
        MonitorNotFound: if the project has no active monitor of this id.
        FileReadError: if the host cannot read the file now.
        PathNotAllowed, LogDirectoryUnusable, LogDirectoryForeign: if the host closed the path.
        ControllerRevoked, ControllerOffline, HostTooOld, HostSilent: if the host gives no answer.

    """
    wanted = monitor_id_of(session_id)
    update = await _read(project_id, wanted, wait_seconds, request_id)
    if not is_digest:
        return update
    first = update.offset
    while (
        not update.is_repeat and update.event.has_more and update.next_offset - first < DIGEST_BYTES
    ):
        try:
            more = await _read(project_id, wanted, 0.0, request_id, earlier=update)
        except _MovedOnError:
            break
        update = replace(more, data=update.data + more.data, offset=first)
        if not more.data:
            break
    return replace(update, digest=await asyncio.to_thread(_digest_of, update))


async def _read(
    project_id: UUID,
    session_id: UUID,
    wait_seconds: float,
    request_id: UUID | None,
    *,
    earlier: MonitorUpdate | None = None,
) -> MonitorUpdate:
    """One read. ``earlier`` is the reply that this read continues; the event is that of both.

    Raises _MovedOnError, and reads nothing, if another read moved the monitor on from the end of
    ``earlier``: what this read moved it past would be in no reply.

    Of two reads of one place the second reads on, unless it has a ``request_id``: it may be a call
    that its caller gave up and repeated, and nobody would hear what it moves the monitor past.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + clamped(wait_seconds)
    is_second = False
    while True:
        # Looked up in every round: the call that this one retries may still be running.
        place, repeated = await in_database(
            _look, project_id, session_id, request_id if earlier is None else None
        )
        if repeated is not None:
            return repeated
        if earlier is not None and place.next_offset != earlier.next_offset:
            raise _MovedOnError
        if is_second and request_id is not None:
            event = FileEvent(file_position=place.position, has_more=True)
            if earlier is not None:
                event = event.after(earlier.event)
            return _update(place, event, place.next_offset, b"")
        left = max(0.0, deadline - loop.time())
        chunk = await read_file(place.controller_id, place.question(left))
        if chunk.failure is not None:
            raise await in_database(read_error, chunk.failure, place.controller_id)
        update = await in_database(_advance, place, chunk, request_id, earlier)
        if update is not None:
            return update
        is_second = True


def _look(
    project_id: UUID, session_id: UUID, request_id: UUID | None
) -> tuple[Place, MonitorUpdate | None]:
    """The place to read from, and the last reply if it was to ``request_id``."""
    # The place first: a reply that is stored after this look changes the version of the place, so
    # that _advance refuses the stale place.
    place = place_of(project_id, session_id)
    if request_id is None:
        return place, None
    monitor = Monitor.objects.filter(
        id=place.monitor_id, status=Monitor.Status.ACTIVE, request_id=request_id
    ).first()
    if monitor is None:
        return place, None
    data = b"".join(monitor_log.pieces(monitor.id, monitor.shown_from, monitor.shown_to))
    event = msgspec.convert(monitor.shown_event, FileEvent)
    return place, replace(
        _update(place, event, monitor.shown_from, data),
        next_offset=monitor.shown_to,
        is_repeat=True,
    )


def _update(place: Place, event: FileEvent, offset: int, data: bytes) -> MonitorUpdate:
    """The reply of ``data``, which begins at ``offset`` of all that the monitor has read."""
    rest = 0
    if data and offset and not (event.reset or event.gap or event.late):
        before = monitor_log.pieces(place.monitor_id, max(0, offset - LOOK_BACK_BYTES), offset)
        rest = rest_of(b"".join(before), data)
    return MonitorUpdate(
        session_id=place.session_id,
        event=event,
        data=data,
        offset=offset,
        next_offset=offset + len(data),
        rest_bytes=rest,
    )


@transaction.atomic
def _advance(
    place: Place, chunk: FileChunk, request_id: UUID | None, earlier: MonitorUpdate | None
) -> MonitorUpdate | None:
    """Moves the monitor on; None if another read of this place was first, or it was stopped."""
    columns = place.columns_after(chunk)
    event = FileEvent(
        file_position=columns.get("file_position", place.position),
        has_more=chunk.has_more,
        reset=chunk.reset,
        gap=chunk.gap,
        lost_bytes=chunk.gap_bytes,
        late=chunk.late,
    )
    update = _update(place, event, place.next_offset, chunk.data)
    if earlier is not None:
        update = replace(update, event=event.after(earlier.event))
    if not chunk.data and chunk.reset is None and chunk.gap is None:
        # Nothing came, so nothing is written: a caller may ask often.
        return update
    moved = Monitor.objects.filter(
        id=place.monitor_id, version=place.version, status=Monitor.Status.ACTIVE
    ).update(
        **columns,
        next_offset=update.next_offset,
        version=F("version") + 1,
        shown_from=place.next_offset if earlier is None else earlier.offset,
        shown_to=update.next_offset,
        shown_event=asdict(update.event),
        request_id=request_id,
        read_at=clock.now(),
    )
    if not moved:
        return None
    monitor_log.append(place.monitor_id, place.next_offset, chunk.data)
    return update


def _digest_of(update: MonitorUpdate) -> Digest:
    digester = Digester(update.offset)
    digester.feed(update.data)
    return digester.digest()


_READ_ERRORS: Final = {
    "LOG_DIRECTORY_UNUSABLE": LogDirectoryUnusable,
    "LOG_DIRECTORY_FOREIGN": LogDirectoryForeign,
}


def read_error(failure: Failure, host: UUID) -> Exception:
    """The error for a caller, from the failure that the host ``host`` reported."""
    if failure.code == PathNotAllowed.code:
        return not_allowed(host)
    return _READ_ERRORS.get(failure.code, FileReadError)()


def not_allowed(host: UUID) -> PathNotAllowed:
    """The refusal of a path, which names the directories that the host has open."""
    return PathNotAllowed(Controller.objects.values_list("log_roots", flat=True).get(id=host))
