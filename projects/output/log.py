"""The stored output of sessions: append, read at an offset, trim, verify.

Offsets are absolute bytes of one stream.

A read is one range scan of the unique index, from the last chunk that starts at or before its
offset on: it costs what it returns, wherever it starts. Statements are written out where they run
several times in every turn: the ORM takes ten times as long to build and read them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from controller_client.protocol.limits import MAX_CHUNK_BYTES
from controller_client.protocol.messages import GapReason, HostTime, Stream, StreamFinal
from projects.models import CommandSession, OutputChunk, OutputGap
from projects.output.recording import screens
from projects.storage import clock
from projects.storage.columns import as_parameter, host_columns, time_as_parameter
from projects.storage.rows import execute, row_update

# A gap as old as the session may be followed by many small ones; a read shows no more than this at
# once.
MAX_GAPS_PER_READ: Final = 100
# 2 MiB per transaction: a trim must not keep writers waiting.
TRIM_CHUNKS_PER_TRANSACTION: Final = 32
TRIM_SLACK_BYTES: Final = 4 * 1024 * 1024
PIECE_BYTES: Final = 1024 * 1024
_OFFSET_COLUMNS: Final[dict[Stream, tuple[str, str]]] = {
    "stdout": ("stdout_first_offset", "stdout_next_offset"),
    "stderr": ("stderr_first_offset", "stderr_next_offset"),
}

_INSERT_CHUNK: Final = (
    'INSERT INTO projects_outputchunk (session_id, stream, "offset", size, seq, data, host_time, '
    "host_clock, created_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
# From the chunk that covers the offset on. To look as far back as a chunk may be long would pass
# every small one on the way.
_READ: Final = (
    'SELECT "offset", data FROM projects_outputchunk WHERE session_id = %s AND stream = %s AND '
    '"offset" < %s AND "offset" >= COALESCE('
    '(SELECT MAX("offset") FROM projects_outputchunk WHERE session_id = %s AND stream = %s AND '
    '"offset" <= %s), %s) ORDER BY "offset"'
)
# A budget's worth of each stream: more than that of one cannot be among the newest of both.
_IN_ORDER: Final = (
    'SELECT stream, "offset", seq, data FROM projects_outputchunk WHERE session_id = %s'
    ' AND ((stream = %s AND "offset" > %s AND "offset" < %s) OR (stream = %s AND "offset" > %s '
    'AND "offset" < %s)) ORDER BY seq DESC'
)


class NewChunk(NamedTuple):
    """Bytes to be stored; ``seq`` orders the chunks of a session across its streams.

    ``at`` is when the host saw the first byte.
    """

    session_id: UUID
    stream: Stream
    offset: int
    seq: int
    data: bytes
    at: HostTime | None = None


@dataclass(frozen=True, slots=True)
class GapRange:
    """A range of bytes that are gone."""

    from_offset: int
    to_offset: int
    reason: str


class OutputSlice(NamedTuple):
    """The result of a read: bytes, and the gaps between them, clipped to the range that was read.

    The read ended at ``offset + len(data) + the gaps' lengths``: see ``next_offset``.
    """

    data: bytes
    gaps: list[GapRange]

    def next_offset(self, offset: int) -> int:
        """The offset of the next read, if this read began at ``offset``."""
        return offset + len(self.data) + sum(gap.to_offset - gap.from_offset for gap in self.gaps)


def append(chunks: Sequence[NewChunk]) -> None:
    """Stores chunks, inside the caller's transaction.

    The caller has checked that each chunk begins where its stream ended.
    """
    now = time_as_parameter(clock.now())
    rows = [
        (
            as_parameter(c.session_id),
            c.stream,
            c.offset,
            len(c.data),
            c.seq,
            c.data,
            *host_columns(c.at),
            now,
        )
        for c in chunks
    ]
    if len(rows) == 1:
        execute(_INSERT_CHUNK, rows[0])
    elif rows:
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT_CHUNK, rows)


def add_gap(
    session_id: UUID, stream: Stream, from_offset: int, to_offset: int, reason: GapReason
) -> None:
    """Stores that bytes are gone; inside the caller's transaction."""
    OutputGap.objects.create(
        session_id=session_id,
        stream=stream,
        from_offset=from_offset,
        to_offset=to_offset,
        reason=reason,
    )


def read(session_id: UUID, stream: Stream, offset: int, max_bytes: int) -> OutputSlice:
    """At most ``max_bytes`` from ``offset`` on, and the gaps on the way.

    Empty at the end of what is stored.

    The cost depends on what is returned, not on the offset.
    """
    data = _contiguous(session_id, stream, offset, max_bytes)
    if len(data) >= max_bytes or (
        data and not _has_gap_after(session_id, stream, offset + len(data))
    ):
        return OutputSlice(data, [])
    return _read_across_gaps(session_id, stream, offset, max_bytes)


def _has_gap_after(session_id: UUID, stream: Stream, offset: int) -> bool:
    return OutputGap.objects.filter(
        session_id=session_id, stream=stream, from_offset=offset
    ).exists()


def _read_across_gaps(session_id: UUID, stream: Stream, offset: int, max_bytes: int) -> OutputSlice:
    rows = OutputGap.objects.filter(
        session_id=session_id, stream=stream, to_offset__gt=offset
    ).order_by("from_offset")
    known = [
        GapRange(*row)
        for row in rows.values_list("from_offset", "to_offset", "reason")[:MAX_GAPS_PER_READ]
    ]
    parts: list[bytes] = []
    gaps: list[GapRange] = []
    position, left = offset, max_bytes
    for gap in known:
        if gap.from_offset > position:
            part = _contiguous(session_id, stream, position, min(left, gap.from_offset - position))
            parts.append(part)
            position, left = position + len(part), left - len(part)
        if left <= 0 or position < gap.from_offset:
            break
        gaps.append(replace(gap, from_offset=position))
        position = gap.to_offset
    else:
        if left > 0 and len(known) < MAX_GAPS_PER_READ:
            parts.append(_contiguous(session_id, stream, position, left))
    return OutputSlice(b"".join(parts), gaps)


def _contiguous(session_id: UUID, stream: Stream, offset: int, max_bytes: int) -> bytes:
    """Bytes from ``offset`` up to the first hole, or ``max_bytes``."""
    key = as_parameter(session_id)
    wanted = [key, stream, offset + max_bytes, key, stream, offset, offset]
    rows = execute(_READ, wanted).fetchall()
    parts: list[bytes] = []
    position, end = offset, offset + max_bytes
    for start, data in rows:
        last = start + len(data)
        if start == position and last <= end:
            # Nearly every chunk, and there may be many small ones.
            parts.append(data)
            position = last
        elif start > position:
            break
        elif last > position:
            parts.append(bytes(data[position - start : end - start]))
            position += len(parts[-1])
    return b"".join(parts)


def pieces(session_id: UUID, stream: Stream, start: int, end: int) -> Iterator[bytes | GapRange]:
    """Yields what is stored of ``[start, end)`` in order: bytes, and the gaps between them.

    Every other read of a range is built on this one. Gaps are cut to the range. A piece of bytes is
    as large as the store gives it, up to PIECE_BYTES.
    """
    position = start
    while position < end:
        found = read(session_id, stream, position, min(end - position, PIECE_BYTES))
        if found.next_offset(position) == position:
            return
        data = memoryview(found.data)
        for gap in found.gaps:
            if position >= end:
                # The gap before this one reaches past the range.
                return
            before, data = data[: gap.from_offset - position], data[gap.from_offset - position :]
            if before:
                yield bytes(before[: end - position])
            if gap.from_offset >= end:
                return
            yield replace(gap, to_offset=min(gap.to_offset, end))
            position = gap.to_offset
        # A gap takes nothing of what a read may return: after one it may have gone past the end.
        if data and position < end:
            yield bytes(data[: end - position])
        position += len(data)


def page_end(session_id: UUID, stream: Stream, start: int, end: int, max_bytes: int) -> int:
    """The end of a page of ``[start, end)`` that has at most ``max_bytes`` stored bytes.

    No page ends inside a gap: the rest of the gap takes nothing of it, however long it is.
    """
    cut = min(end, start + max_bytes)
    if cut == end:
        return end
    around = OutputGap.objects.filter(
        session_id=session_id, stream=stream, from_offset__lt=cut, to_offset__gt=cut
    )
    gap_end = around.order_by("from_offset").values_list("to_offset", flat=True).first()
    return cut if gap_end is None else min(end, gap_end)


def read_range(
    session_id: UUID, stream: Stream, start: int, end: int
) -> tuple[bytes, tuple[GapRange, ...]]:
    """Returns the stored bytes of ``[start, end)`` in one piece, and the gaps between them."""
    parts = list(pieces(session_id, stream, start, end))
    data = [part for part in parts if isinstance(part, bytes)]
    gaps = tuple(part for part in parts if isinstance(part, GapRange))
    return data[0] if len(data) == 1 else b"".join(data), gaps


def newest_in_order(session_id: UUID, ends: Mapping[Stream, int], max_bytes: int) -> list[NewChunk]:
    """The newest ``max_bytes`` of streams that end at ``ends``, in the order they were printed.

    The first piece may be cut.
    """
    parameters: list[Any] = [as_parameter(session_id)]
    for stream, end in ends.items():
        parameters += [stream, end - max_bytes - MAX_CHUNK_BYTES, end]
    with connection.cursor() as cursor:
        cursor.execute(_IN_ORDER, parameters)
        rows = cursor.fetchall()
    found: list[NewChunk] = []
    left = max_bytes
    for stream, offset, seq, data in rows:
        kept = bytes(data)[-left:]
        found.append(NewChunk(session_id, stream, offset + len(data) - len(kept), seq, kept))
        left -= len(kept)
        if left <= 0:
            break
    return found[::-1]


def trim(session_id: UUID, stream: Stream, retained_bytes: int) -> int:
    """Drops the oldest bytes of a stream over ``retained_bytes``, one batch at most.

    Returns the number of bytes dropped. Everything before the cut becomes one gap.
    """
    first_column, next_column = _OFFSET_COLUMNS[stream]
    with transaction.atomic():
        row = _locked(session_id).values_list(first_column, next_column).first()
        if row is None or row[1] - row[0] <= retained_bytes + slack_bytes(retained_bytes):
            return 0
        first, wanted_cut = row[0], row[1] - retained_bytes
        stored = OutputChunk.objects.filter(session_id=session_id, stream=stream)
        oldest = list(
            stored.order_by("offset").values_list("id", "offset", "size")[
                :TRIM_CHUNKS_PER_TRANSACTION
            ]
        )
        doomed = [
            (chunk_id, offset + size)
            for chunk_id, offset, size in oldest
            if offset + size <= wanted_cut
        ]
        # Without such chunks there is a gap up to the oldest one, or to the end.
        cut = doomed[-1][1] if doomed else oldest[0][1] if oldest else row[1]
        if cut <= first:
            return 0
        stored.filter(id__in=[chunk_id for chunk_id, _ in doomed]).delete()
        _mark_gone(session_id, stream, cut)
    return int(cut - first)


def slack_bytes(retained_bytes: int) -> int:
    """The number of bytes over ``retained_bytes`` that may be stored until the stream is trimmed.

    Trimming chunk by chunk would rewrite the gap for each chunk.
    """
    return min(TRIM_SLACK_BYTES, max(MAX_CHUNK_BYTES, retained_bytes))


def clear(session_id: UUID) -> bool:
    """Takes away a batch of the oldest output of a session that is over; True if there may be more.

    At the end all of it is one gap.
    """
    with transaction.atomic():
        row = _locked(session_id).values_list("stdout_next_offset", "stderr_next_offset").first()
        if row is None:
            return False
        oldest = OutputChunk.objects.filter(session_id=session_id).values_list("id", flat=True)[
            :TRIM_CHUNKS_PER_TRANSACTION
        ]
        doomed = list(oldest)
        OutputChunk.objects.filter(id__in=doomed).delete()
        if len(doomed) == TRIM_CHUNKS_PER_TRANSACTION:
            return True
        _mark_gone(session_id, "stdout", row[0])
        _mark_gone(session_id, "stderr", row[1])
    return False


def _locked(session_id: UUID) -> QuerySet[CommandSession]:
    return CommandSession.objects.select_for_update(no_key=True).filter(id=session_id)


def _mark_gone(session_id: UUID, stream: Stream, cut: int) -> None:
    """Everything before ``cut`` is one gap."""
    if cut == 0:
        return
    OutputGap.objects.filter(session_id=session_id, stream=stream, to_offset__lte=cut).delete()
    add_gap(session_id, stream, 0, cut, "retention")
    screens.forget_up_to(session_id, stream, cut)
    CommandSession.objects.filter(id=session_id).update(**{_OFFSET_COLUMNS[stream][0]: cut})


def verify(session_id: UUID, finals: Iterable[StreamFinal]) -> list[Stream]:
    """Compares stored streams with the holder's digests, and records the verdicts.

    Returns the streams that differ.

    There is no verdict where bytes are gone or not all was stored.
    """
    verdicts = {
        final.stream: verdict
        for final in finals
        if (verdict := _is_as_sent(session_id, final)) is not None
    }
    if verdicts:
        row_update(
            CommandSession,
            session_id,
            **{f"{stream}_sha256_ok": verdict for stream, verdict in verdicts.items()},
        )
    return [stream for stream, verdict in verdicts.items() if not verdict]


def _is_as_sent(session_id: UUID, final: StreamFinal) -> bool | None:
    if not final.next_offset:
        return final.sha256 == sha256().hexdigest()
    digest, position = sha256(), 0
    for data in pieces(session_id, final.stream, 0, final.next_offset):
        if isinstance(data, GapRange):
            return None
        digest.update(data)
        position += len(data)
    return digest.hexdigest() == final.sha256 if position == final.next_offset else None
