"""A range of a session's terminal as a caller sees it: text, raw bytes, or the rendered screen.

Runs in a database thread. The cost depends on the budget, not on the length of the stream or of the
range.
"""

import base64
import re
from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects.output import log as output_log
from projects.output.screen_view import (
    SCREEN_BYTES,
    Screen,
    draws_whole_screen,
    render_screen,
)
from projects.output.stream_text import Cursor, StreamText, read_ends, read_text
from projects.output.window_start import TURN_LOOK_BACK_BYTES
from projects.secrets.masks import SecretMask, secret_mask

View = Literal["text", "raw", "screen"]

STDOUT: Final[Stream] = "stdout"
_ABOVE_BYTES: Final = 4096
_GLANCE_BYTES: Final = 8 * 1024
_COSTLY: Final = re.compile(rb"\x1b\[[0-9;]*[JPLM@X]|\x1b\[\?[0-9;]*3[hl]")
_MOST_CELLS: Final = 2_000_000
"""Sequences that may write each cell write no more cells than this in a glance."""
_GLANCE_FOR_BYTES: Final = 4096


def view_turn(
    session_id: UUID,
    start: int,
    end: int,
    budget_bytes: int,
    *,
    is_final: bool,
    mask: SecretMask | None = None,
) -> StreamText:
    """Shows all of ``[start, end)``: whole if it fits the budget, else its head and its tail.

    Unless ``is_final``, an incomplete character or escape sequence at the end is left for the next
    call.
    """
    return read_ends(
        session_id,
        STDOUT,
        start,
        end,
        budget_bytes,
        is_final=is_final,
        look_back_bytes=TURN_LOOK_BACK_BYTES,
        marks_gaps=True,
        from_line_start=True,
        mask=mask,
    )


def view_page(
    session_id: UUID,
    start: int,
    end: int,
    budget_bytes: int,
    *,
    is_final: bool,
    view: View,
    stream: Stream = STDOUT,
    mask: SecretMask | None = None,
) -> StreamText:
    """Shows the first ``budget_bytes`` of ``[start, end)``, cut at a whole character.

    The rest is the next page, but for that of a gap, which is shown whole.
    """
    page_end = output_log.page_end(session_id, stream, start, end, budget_bytes)
    if view == "raw":
        data, gaps = output_log.read_range(session_id, stream, start, page_end)
        encoded = base64.b64encode(data).decode("ascii")
        return StreamText("", start, page_end, gaps, output_base64=encoded)
    is_whole = is_final and page_end == end

    def read(*, is_final: bool) -> StreamText:
        return read_text(
            session_id, stream, start, page_end, is_final=is_final, marks_gaps=True, mask=mask
        )

    page = read(is_final=is_whole)
    if page.next_offset == start and page_end < end:
        # A sequence is longer than the page. The reader would never get past it.
        page = read(is_final=True)
    return page


def view_screen(session_id: UUID, end: int, rows: int, cols: int) -> StreamText:
    """Shows what a terminal of this size has on its screen after ``end`` bytes."""
    data, gaps = output_log.read_range(session_id, STDOUT, max(0, end - SCREEN_BYTES), end)
    screen = render_screen(data, rows=rows, cols=cols)
    cursor = Cursor(row=screen.cursor_row, column=screen.cursor_column)
    text = secret_mask(session_id).masked("\n".join(screen.lines))
    return StreamText(text, end, end, gaps, cursor=cursor)


def lines_above(session_id: UUID, end: int, mask: SecretMask) -> list[str]:
    """The last lines of the output before ``end``, without the line that ends there."""
    start = max(0, end - _ABOVE_BYTES)
    text = read_text(
        session_id,
        STDOUT,
        start,
        end,
        is_final=True,
        look_back_bytes=TURN_LOOK_BACK_BYTES,
        mask=mask,
    ).text
    return text.split("\n")[:-1]


def glance_at_screen(
    session_id: UUID,
    end: int,
    *,
    rows: int,
    cols: int,
    signs: re.Pattern[str],
    mask: SecretMask,
) -> Screen | None:
    """The screen after ``end`` bytes, if ``signs`` were drawn lately; None if that costs much.

    It costs much if the newest output alone does not make up the whole screen, or erases it again
    and again.
    """
    start = max(0, end - _GLANCE_BYTES)
    data, gaps = output_log.read_range(session_id, STDOUT, start, end)
    if not signs.search(data[-_GLANCE_FOR_BYTES:].decode("utf-8", "replace")):
        return None
    if gaps or (start and not draws_whole_screen(data, rows=rows)):
        return None
    if len(_COSTLY.findall(data)) * rows * cols > _MOST_CELLS:
        return None
    screen = render_screen(data, rows=rows, cols=cols)
    return replace(screen, lines=tuple(mask.masked("\n".join(screen.lines)).split("\n")))
