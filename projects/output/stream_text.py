"""A range of one stream as text.

Offsets are bytes of the stored stream and never stand inside a character.

In the view ``text`` escape sequences and control characters are removed (``terminal_text.view``)
and no offset stands inside a sequence. In the view ``raw`` everything is as it came. Bytes that are
no UTF-8 become replacement characters.

Runs in a database thread; the cost depends on what is returned.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from controller_client.protocol.messages import Stream
from controller_client.protocol.terminal_text.view import complete_length, text_of
from projects.output import characters
from projects.output import log as output_log
from projects.output.characters import is_continuation, length_of_rest
from projects.output.log import GapRange
from projects.output.result import Result
from projects.output.window_start import LOOK_BACK_BYTES, bytes_before, rest_before_text
from projects.secrets.masks import SecretMask, secret_mask

StreamView = Literal["text", "raw"]
# Of an output that is too long, the end says more than the beginning.
_HEAD_SHARE: Final = 4
_LINE_START_BYTES: Final = 1024
"""A tail begins with a whole line if a line begins within as many bytes."""


class Cursor(Result):
    """The place of the cursor on the screen, counted from 0."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class StreamText:
    """``text`` shows ``[offset, next_offset)``, but for what is gone and what was left out.

    ``lost_bytes`` are gone, most of them in ``gaps``. ``omitted_bytes`` from ``omitted_offset`` on
    were left out for the budget. ``output_base64`` and ``cursor`` are set in the views ``raw`` and
    ``screen`` of a terminal.
    """

    text: str
    offset: int
    next_offset: int
    gaps: tuple[GapRange, ...] = ()
    lost_bytes: int = 0
    omitted_bytes: int = 0
    omitted_offset: int | None = None
    output_base64: str | None = None
    cursor: Cursor | None = None


def read_text(
    session_id: UUID,
    stream: Stream,
    start: int,
    end: int,
    *,
    is_final: bool,
    view: StreamView = "text",
    look_back_bytes: int = LOOK_BACK_BYTES,
    marks_gaps: bool = False,
    mask: SecretMask | None = None,
) -> StreamText:
    """Reads ``[start, end)`` of a stream as text.

    A start inside a character or an escape sequence moves on behind it. Unless ``is_final``, an
    incomplete character or sequence at the end is left for the next read. A sequence is looked for
    up to ``look_back_bytes`` before ``start``. ``marks_gaps``: the text names each gap where it is.
    ``mask`` hides the session's secrets; None looks it up.
    """
    if start >= end:
        return StreamText("", start, start)
    begun, position = None, end
    parts: list[str] = []
    gaps: list[GapRange] = []
    for run in _runs(session_id, stream, start, end):
        if isinstance(run, GapRange):
            gaps.append(run)
            position = run.to_offset
            if marks_gaps:
                lost = run.to_offset - run.from_offset
                parts.append(f"\n[… {lost} bytes are lost: {run.reason} …]\n")
            continue
        skipped = 0
        if run.offset > start:
            # A gap is before it, and with the gap whatever began there.
            skipped = length_of_rest(None, run.data)
        elif start:
            skipped = _rest(session_id, stream, run, view, look_back_bytes)
        if begun is None:
            begun = run.offset + skipped
        is_last = run.offset + len(run.data) == end
        kept = len(run.data)
        if is_last and not is_final:
            kept = skipped + _complete_length(run.data[skipped:], view)
        parts.append(_shown(run.data[skipped:kept], view))
        position = run.offset + kept
    text = "".join(parts)
    if view == "text":
        text = (mask or secret_mask(session_id)).masked(text)
    if begun is None:
        # Nothing of it is left.
        return StreamText(text, end, end, tuple(gaps), end - start)
    lost_bytes = sum(gap.to_offset - gap.from_offset for gap in gaps)
    return StreamText(text, begun, position, tuple(gaps), lost_bytes)


def read_ends(
    session_id: UUID,
    stream: Stream,
    start: int,
    end: int,
    budget_bytes: int,
    *,
    is_final: bool,
    view: StreamView = "text",
    look_back_bytes: int = LOOK_BACK_BYTES,
    marks_gaps: bool = False,
    from_line_start: bool = False,
    mask: SecretMask | None = None,
) -> StreamText:
    """Reads all of ``[start, end)`` as text if it fits the budget, else its head and its tail.

    ``from_line_start``: the tail begins with a whole line, if one begins soon after the cut. The
    other arguments are those of ``read_text``.
    """

    def read(begin: int, stop: int, look_back: int, *, is_last: bool) -> StreamText:
        return read_text(
            session_id,
            stream,
            begin,
            stop,
            is_final=is_last,
            view=view,
            look_back_bytes=look_back,
            marks_gaps=marks_gaps,
            mask=mask,
        )

    if end - start <= budget_bytes:
        return read(start, end, look_back_bytes, is_last=is_final)
    head_bytes = budget_bytes // _HEAD_SHARE
    head = read(start, start + head_bytes, look_back_bytes, is_last=False)
    tail_start = end - (budget_bytes - head_bytes)
    line_start = _first_line_start(session_id, stream, tail_start, end) if from_line_start else 0
    # No sequence goes on behind the end of a line.
    tail_look_back = 0 if line_start else LOOK_BACK_BYTES
    tail = read(tail_start + line_start, end, tail_look_back, is_last=is_final)
    # What is lost at the beginning of the tail was not left out.
    tail_from = min([tail.offset, *(gap.from_offset for gap in tail.gaps)])
    omitted_bytes = tail_from - head.next_offset
    marker = f"\n[… {omitted_bytes} bytes left out from offset {head.next_offset} on …]\n"
    return StreamText(
        head.text + marker + tail.text,
        start,
        tail.next_offset,
        (*head.gaps, *tail.gaps),
        head.lost_bytes + tail.lost_bytes,
        omitted_bytes,
        head.next_offset,
    )


class OrderedPiece(Result):
    """Output of one stream, until the other stream printed more."""

    stream: str
    offset: int
    text: str


def read_in_order(
    session_id: UUID, ends: Mapping[Stream, int], max_bytes: int
) -> list[OrderedPiece]:
    """The newest output of both streams in the order it was printed.

    A character or sequence that is split comes with its last byte.
    """
    pieces: list[OrderedPiece] = []
    # Where a stream was left, and the beginning of a character that was not whole there.
    left: dict[Stream, tuple[int, bytes]] = {}
    for chunk in output_log.newest_in_order(session_id, ends, max_bytes):
        at, begun = left.get(chunk.stream, (None, b""))
        if at == chunk.offset:
            data = begun + chunk.data
        else:
            data = chunk.data[
                rest_before_text(session_id, chunk.stream, chunk.offset, chunk.data) :
            ]
        end = chunk.offset + len(chunk.data)
        start, whole = end - len(data), complete_length(data)
        left[chunk.stream] = (end, data[whole:])
        text = text_of(data[:whole])
        if pieces and pieces[-1].stream == chunk.stream and text:
            pieces[-1] = pieces[-1].model_copy(update={"text": pieces[-1].text + text})
        elif text:
            pieces.append(OrderedPiece(stream=chunk.stream, offset=start, text=text))
    mask = secret_mask(session_id)
    return [piece.model_copy(update={"text": mask.masked(piece.text)}) for piece in pieces]


@dataclass(frozen=True, slots=True)
class _Run:
    """Bytes without a gap between them."""

    offset: int
    data: bytes


def _runs(session_id: UUID, stream: Stream, start: int, end: int) -> Iterator[_Run | GapRange]:
    """Yields runs that are as long as they can be, and the gaps between them."""
    held: list[bytes] = []
    offset = start
    for piece in output_log.pieces(session_id, stream, start, end):
        if isinstance(piece, bytes):
            held.append(piece)
            continue
        if held:
            yield _Run(offset, b"".join(held))
            held = []
        yield piece
        offset = piece.to_offset
    if held:
        yield _Run(offset, b"".join(held))


def _rest(
    session_id: UUID, stream: Stream, run: _Run, view: StreamView, look_back_bytes: int
) -> int:
    """The number of bytes of the run that end a character or a sequence begun just before it."""
    if view == "text":
        return rest_before_text(session_id, stream, run.offset, run.data, look_back_bytes)
    if not is_continuation(run.data[0]):
        return 0
    before = bytes_before(session_id, stream, run.offset, characters.LONGEST - 1)
    return length_of_rest(before or None, run.data)


def _first_line_start(session_id: UUID, stream: Stream, start: int, end: int) -> int:
    """The distance from ``start`` to the next line; 0 if it is far, or bytes are lost."""
    data, gaps = output_log.read_range(
        session_id, stream, start, min(end, start + _LINE_START_BYTES)
    )
    return 0 if gaps else data.find(b"\n") + 1


def _complete_length(data: bytes, view: StreamView) -> int:
    return complete_length(data) if view == "text" else characters.complete_length(data)


def _shown(data: bytes, view: StreamView) -> str:
    return text_of(data) if view == "text" else data.decode(errors="replace")
