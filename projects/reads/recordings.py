"""Recordings of sessions: their events, their output with its times, and exports of both.

Nothing is consumed. An export is recorded in the audit log, because all of a session leaves the
server with it.
"""

import base64
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, Final, Literal, get_args
from uuid import UUID

from django.http import StreamingHttpResponse

from controller_client.protocol.messages import Stream
from projects.audit.log import audit
from projects.models import CommandSession, SessionEvent
from projects.output.log import pieces
from projects.output.recording import rows
from projects.output.recording.cast import cast, masked
from projects.output.result import Result
from projects.output.stream_text import StreamText, read_text
from projects.reads.streamed import streamed
from projects.secrets.masks import SecretMask, secret_mask
from projects.sessions import selectors
from projects.storage.access import at_length, in_database

ExportFormat = Literal["cast", "text", "raw"]
EXPORT_FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)
MEDIA_TYPES: Final[dict[ExportFormat, str]] = {
    "cast": "application/x-asciicast",
    "text": "text/plain; charset=utf-8",
    "raw": "application/octet-stream",
}
RESPONSE_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
MAX_EVENTS: Final = 500
MAX_CHUNKS: Final = 64
SHOWN_BYTES: Final = 256 * 1024
_PAGE_BYTES: Final = 64 * 1024
_BATCH_CHARS: Final = 256 * 1024
_BATCH_LINES: Final = 2000
_STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")


class RecordedEvent(Result):
    """One event. ``host_time`` and ``host_clock`` are None if only the server's time is known."""

    seq: int
    kind: str
    offset: int
    host_time: datetime | None
    host_clock: float | None
    stored_at: datetime
    actor: str
    detail: dict[str, Any]


class RecordedChunk(Result):
    """One stored piece of output with the time of its first byte, as ``RecordedEvent`` has it."""

    stream: Stream
    offset: int
    host_time: datetime | None
    host_clock: float | None
    stored_at: datetime
    data_base64: str


async def session_events(
    project_id: UUID, session_id: UUID, *, after_seq: int = 0, limit: int = MAX_EVENTS
) -> list[RecordedEvent]:
    """The events after number ``after_seq``, at most MAX_EVENTS. Raises SessionNotFound."""
    return await at_length(_events, project_id, session_id, after_seq, min(limit, MAX_EVENTS))


async def session_chunks(
    project_id: UUID,
    session_id: UUID,
    *,
    stream: Stream = "stdout",
    offset: int = 0,
    limit: int = MAX_CHUNKS,
) -> list[RecordedChunk]:
    """The output from the piece that holds ``offset`` on. Raises SessionNotFound.

    At most MAX_CHUNKS pieces. Bytes that are gone lie between two pieces.
    """
    return await at_length(_chunks, project_id, session_id, stream, offset, min(limit, MAX_CHUNKS))


async def recording_export(
    project_id: UUID,
    session_id: UUID,
    *,
    export_format: ExportFormat,
    actor: str,
    require: Callable[[], None] = lambda: None,
) -> AsyncIterator[bytes]:
    """All that is stored of a session so far, in pieces. Raises SessionNotFound at once.

    ``require`` raises what ends the export, once its reader may not read any more.

    ``cast``: asciicast v3. ``text``: what was printed, without control characters. ``raw``: the
    bytes as they are stored; bytes that are gone leave no trace in them.
    """
    newest, session = await in_database(_begin_export, project_id, session_id, export_format, actor)
    return streamed(export_pieces(session, export_format, newest), require)


def recording_attachment(
    found: AsyncIterable[bytes], session_id: UUID, wanted: ExportFormat
) -> StreamingHttpResponse:
    """The response that has a browser save the recording, and interpret nothing of it."""
    ending = {"cast": "cast", "text": "txt", "raw": "log"}[wanted]
    name = f'attachment; filename="session-{session_id}.{ending}"'
    headers = {**RESPONSE_HEADERS, "Content-Disposition": name}
    return StreamingHttpResponse(found, content_type=MEDIA_TYPES[wanted], headers=headers)


def session_newest_text(session: CommandSession, *, actor: str) -> dict[Stream, StreamText]:
    """The newest SHOWN_BYTES of each stream that has any. The look is recorded in the audit log."""
    audit(actor, "transcript.view", (session.project_id, session.controller_id, session.pk))
    return {
        stream: read_text(
            session.pk, stream, max(0, end - SHOWN_BYTES), end, is_final=True, marks_gaps=True
        )
        for stream, end in zip(_STREAMS, _ends(session), strict=True)
        if end
    }


def export_pieces(
    session: CommandSession, export_format: ExportFormat, upto_event: int | None = None
) -> Iterator[bytes]:
    """Yield the export in pieces of bounded size. Run each step in a database thread."""
    if export_format == "cast":
        return _batches(cast(session, upto_event))
    return _text(session) if export_format == "text" else _raw(session)


def _begin_export(
    project_id: UUID, session_id: UUID, export_format: ExportFormat, actor: str
) -> tuple[int, CommandSession]:
    """Return the newest event and the row of the session, which reaches at least as far."""
    newest = rows.newest_event(session_id)
    session = selectors.session_of(project_id, session_id)
    about = (project_id, session.controller_id, session_id)
    audit(actor, "transcript.download", about, {"format": export_format})
    return newest, session


def _batches(lines: Iterator[str]) -> Iterator[bytes]:
    batch: list[str] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line)
        if size >= _BATCH_CHARS or len(batch) >= _BATCH_LINES:
            yield "".join(batch).encode()
            batch, size = [], 0
    if batch:
        yield "".join(batch).encode()


def _text(session: CommandSession) -> Iterator[bytes]:
    # Masked as a whole: a secret may begin on one page and end on the next.
    pages = ((0.0, "o", text) for text in _unmasked_pages(session))
    for _, _, text in masked(pages, secret_mask(session.pk)):
        yield text.encode()


def _unmasked_pages(session: CommandSession) -> Iterator[str]:
    for stream, end in zip(_STREAMS, _ends(session), strict=True):
        position = 0
        while position < end:
            upto = min(end, position + _PAGE_BYTES)
            is_last = upto == end
            page = read_text(
                session.pk,
                stream,
                position,
                upto,
                is_final=is_last,
                marks_gaps=True,
                mask=SecretMask(),
            )
            position = max(page.next_offset, upto if page.next_offset == position else 0)
            if page.text:
                yield page.text


def _raw(session: CommandSession) -> Iterator[bytes]:
    for stream, end in zip(_STREAMS, _ends(session), strict=True):
        for piece in pieces(session.pk, stream, 0, end):
            if isinstance(piece, bytes):
                yield piece


def _ends(session: CommandSession) -> tuple[int, int]:
    return session.stdout_next_offset, session.stderr_next_offset


def _events(project_id: UUID, session_id: UUID, after_seq: int, limit: int) -> list[RecordedEvent]:
    selectors.session_of(project_id, session_id)
    mask = secret_mask(session_id)
    found = islice(rows.events(session_id, after_seq), limit)
    return [_recorded(event, mask.masked) for event in found]


def _recorded(event: SessionEvent, masked: Any) -> RecordedEvent:
    detail = {
        name: masked(value) if isinstance(value, str) else value
        for name, value in event.detail.items()
    }
    return RecordedEvent(
        seq=event.seq,
        kind=event.kind,
        offset=event.offset,
        host_time=event.host_time,
        host_clock=event.host_clock,
        stored_at=event.created_at,
        actor=event.actor,
        detail=detail,
    )


def _chunks(
    project_id: UUID, session_id: UUID, stream: Stream, offset: int, limit: int
) -> list[RecordedChunk]:
    selectors.session_of(project_id, session_id)
    return [
        RecordedChunk(
            stream=chunk.stream,
            offset=chunk.offset,
            host_time=chunk.host_time,
            host_clock=chunk.host_clock,
            stored_at=chunk.stored_at,
            data_base64=base64.b64encode(chunk.data or b"").decode("ascii"),
        )
        for chunk in islice(rows.chunks(session_id, stream, offset), limit)
    ]
