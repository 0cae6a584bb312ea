"""A range of a session's terminal as a caller sees it: text within a budget, raw bytes, or the rendered screen.

Runs in a database thread. The cost depends on the budget, not on the length of the stream or of the range.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects import output_log
from projects.results import Cursor, LostRange, View
from projects.screen_view import SCREEN_BYTES, render_screen
from projects.text_view import TextView, complete_length

STDOUT: Final[Stream] = "stdout"
# Of an over-long output the end says more than the beginning.
_HEAD_SHARE: Final = 4
_LINE_START_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class OutputView:
    """``output`` shows ``[offset, next_offset)`` but for ``omitted_bytes`` from ``omitted_offset`` on."""

    output: str
    next_offset: int
    gaps: tuple[LostRange, ...] = ()
    omitted_bytes: int = 0
    omitted_offset: int | None = None
    output_base64: str | None = None
    cursor: Cursor | None = None


def view_turn(session_id: UUID, start: int, end: int, budget_bytes: int, *, is_final: bool) -> OutputView:
    """All of ``[start, end)``: whole if it fits the budget, else its head and its tail.

    Unless ``is_final``, an incomplete character or escape sequence at the end is left for the next call.
    """
    if end - start <= budget_bytes:
        data, gaps = read_range(session_id, start, end)
        kept = len(data) if is_final else complete_length(data)
        next_offset = end - (len(data) - kept)
        return OutputView(_text(start, data[:kept], gaps), next_offset, gaps)
    head_size = budget_bytes // _HEAD_SHARE
    head, head_gaps = read_range(session_id, start, start + head_size)
    tail_start = end - (budget_bytes - head_size)
    tail, tail_gaps = read_range(session_id, tail_start, end)
    head_end = start + head_size
    if not head_gaps:
        head = head[: complete_length(head)]
        head_end = start + len(head)
    if not tail_gaps:
        skipped = _first_line_start(tail)
        tail, tail_start = tail[skipped:], tail_start + skipped
    kept = len(tail) if is_final else complete_length(tail)
    omitted = tail_start - head_end
    marker = f"\n[… {omitted} bytes left out: read_session_output(offset={head_end}) …]\n"
    output = _text(start, head, head_gaps) + marker + _text(tail_start, tail[:kept], tail_gaps)
    return OutputView(output, end - (len(tail) - kept), (*head_gaps, *tail_gaps), omitted, head_end)


def view_page(
    session_id: UUID, start: int, end: int, budget_bytes: int, *, is_final: bool, view: View, stream: Stream = STDOUT
) -> OutputView:
    """The first ``budget_bytes`` of ``[start, end)``, cut at a whole character; the rest is the next page."""
    page_end = min(end, start + budget_bytes)
    data, gaps = read_range(session_id, start, page_end, stream)
    if view == "raw":
        return OutputView("", page_end, gaps, output_base64=base64.b64encode(data).decode("ascii"))
    is_whole = is_final and page_end == end
    kept = len(data) if is_whole else complete_length(data)
    if kept == 0 and page_end < end:
        # A sequence longer than the page: show what there is, or the reader would never get past it.
        kept = len(data)
    return OutputView(_text(start, data[:kept], gaps), page_end - (len(data) - kept), gaps)


def view_screen(session_id: UUID, end: int, rows: int, cols: int) -> OutputView:
    """What a terminal of this size shows after ``end`` bytes."""
    start = max(0, end - SCREEN_BYTES)
    data, gaps = read_range(session_id, start, end)
    screen = render_screen(data, rows=rows, cols=cols)
    return OutputView("\n".join(screen.lines), end, gaps, cursor=Cursor(row=screen.cursor_row, column=screen.cursor_column))


def read_range(session_id: UUID, start: int, end: int, stream: Stream = STDOUT) -> tuple[bytes, tuple[LostRange, ...]]:
    """The bytes of ``[start, end)`` that exist, and the gaps in between, cut to the range."""
    if end <= start:
        return b"", ()
    data, gaps = output_log.read(session_id, stream, start, end - start)
    clipped = tuple(
        LostRange(from_offset=max(start, gap.from_offset), to_offset=min(end, gap.to_offset), reason=gap.reason)
        for gap in gaps
        if gap.from_offset < end and gap.to_offset > start
    )
    # A gap takes nothing of what a read may return: after one it may have gone past the end.
    return data[: end - start - sum(gap.to_offset - gap.from_offset for gap in clipped)], clipped


def _text(start: int, data: bytes, gaps: Sequence[LostRange]) -> str:
    """Text of the bytes from ``start`` on, with a marker where some are missing."""
    view = TextView()
    if not gaps:
        view.feed(data, final=True)
        return view.text
    parts, position, taken = [], start, 0
    for gap in gaps:
        size = max(0, gap.from_offset - position)
        parts.append(_text(position, data[taken : taken + size], ()))
        parts.append(f"\n[… {gap.to_offset - gap.from_offset} bytes are lost: {gap.reason} …]\n")
        taken, position = taken + size, gap.to_offset
    parts.append(_text(position, data[taken:], ()))
    return "".join(parts)


def _first_line_start(data: bytes) -> int:
    """Where a tail that was cut anywhere may begin: after a line feed soon after the cut, else at a whole character."""
    line_feed = data.find(b"\n", 0, _LINE_START_BYTES)
    if line_feed >= 0:
        return line_feed + 1
    skipped = 0
    while skipped < min(3, len(data)) and data[skipped] & 0xC0 == 0x80:
        skipped += 1
    return skipped
