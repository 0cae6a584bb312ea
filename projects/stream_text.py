"""A range of one stream as text: UTF-8 as it came, control characters and all. Offsets are bytes and never stand inside a character.

Bytes that are no UTF-8 become replacement characters. Runs in a database thread; the cost depends on what is returned.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects import output_log
from projects.characters import LONGEST, complete_length, is_continuation, length_of_rest

_HEAD_SHARE = 4


@dataclass(frozen=True, slots=True)
class StreamText:
    """``text`` shows ``[offset, next_offset)``, but for ``lost_bytes`` that are gone and ``omitted_bytes`` from ``omitted_offset`` on."""

    text: str
    offset: int
    next_offset: int
    lost_bytes: int = 0
    omitted_bytes: int = 0
    omitted_offset: int | None = None


def read_text(session_id: UUID, stream: Stream, start: int, end: int, *, is_final: bool) -> StreamText:
    """``[start, end)``. A start inside a character moves on to the next; unless ``is_final`` an incomplete last one is left for later."""
    if start >= end:
        return StreamText("", start, start)
    begun, position, lost = start, start, 0
    parts: list[str] = []
    for run in _runs(session_id, stream, start, end):
        lost += run.lost_before
        skipped = 0
        if is_continuation(run.data[0]) and (run.lost_before or (run.offset == start and start > 0)):
            skipped = length_of_rest(None if run.lost_before else _before(session_id, stream, start), run.data)
        if not parts:
            begun = run.offset + skipped
        is_last = run.offset + len(run.data) == end
        kept = len(run.data) if is_final or not is_last else skipped + complete_length(run.data[skipped:])
        parts.append(run.data[skipped:kept].decode(errors="replace"))
        position = run.offset + kept
    if not parts:
        # Nothing of it is left.
        return StreamText("", end, end, end - start)
    return StreamText("".join(parts), begun, position, lost)


def read_ends(session_id: UUID, stream: Stream, end: int, budget_bytes: int) -> StreamText:
    """All of a stream that is over, ``[0, end)``: whole if it fits the budget, else its head and its tail."""
    if end <= budget_bytes:
        return read_text(session_id, stream, 0, end, is_final=True)
    head = read_text(session_id, stream, 0, budget_bytes // _HEAD_SHARE, is_final=False)
    tail = read_text(session_id, stream, end - (budget_bytes - budget_bytes // _HEAD_SHARE), end, is_final=True)
    omitted = tail.offset - head.next_offset
    marker = f"\n[… {omitted} bytes left out …]\n"
    return StreamText(head.text + marker + tail.text, 0, end, head.lost_bytes + tail.lost_bytes, omitted, head.next_offset)


@dataclass(frozen=True, slots=True)
class OrderedPiece:
    """What one stream printed before the other printed more; ``text`` begins at ``offset`` of its stream."""

    stream: Stream
    offset: int
    text: str


def read_in_order(session_id: UUID, ends: Mapping[Stream, int], max_bytes: int) -> list[OrderedPiece]:
    """The newest output of both streams in the order it was printed; a character split by the other stream comes with its last byte."""
    pieces: list[OrderedPiece] = []
    # Where a stream was left, and the beginning of a character that was not whole there.
    left: dict[Stream, tuple[int, bytes]] = {}
    for chunk in output_log.newest_in_order(session_id, ends, max_bytes):
        at, begun = left.get(chunk.stream, (None, b""))
        data = begun + chunk.data if at == chunk.offset else chunk.data[length_of_rest(None, chunk.data) :]
        end = chunk.offset + len(chunk.data)
        start, whole = end - len(data), complete_length(data)
        left[chunk.stream] = (end, data[whole:])
        text = data[:whole].decode(errors="replace")
        if pieces and pieces[-1].stream == chunk.stream and text:
            pieces[-1] = replace(pieces[-1], text=pieces[-1].text + text)
        elif text:
            pieces.append(OrderedPiece(chunk.stream, start, text))
    return pieces


@dataclass(frozen=True, slots=True)
class _Run:
    """Bytes without a gap between them, and how many were lost just before."""

    offset: int
    data: bytes
    lost_before: int


def _runs(session_id: UUID, stream: Stream, start: int, end: int) -> list[_Run]:
    runs: list[_Run] = []
    held: list[bytes] = []
    offset, position, lost = start, start, 0
    for piece in output_log.pieces(session_id, stream, start, end):
        if isinstance(piece, bytes):
            held.append(piece)
            position += len(piece)
            continue
        if held:
            runs.append(_Run(offset, b"".join(held), lost))
            held, lost = [], 0
        lost += piece.to_offset - piece.from_offset
        offset = position = piece.to_offset
    if held:
        runs.append(_Run(offset, b"".join(held), lost))
    return runs


def _before(session_id: UUID, stream: Stream, offset: int) -> bytes | None:
    """The few bytes before ``offset``; None if they are gone."""
    start = max(0, offset - LONGEST + 1)
    found = output_log.read(session_id, stream, start, offset - start)
    return found.data if not found.gaps and len(found.data) == offset - start else None
