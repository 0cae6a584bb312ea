"""The rendered grid of a terminal, for full-screen programs.

Pure: bytes in, lines and cursor out.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import pyte

from controller_client.protocol.terminal_text import unseen

SCREEN_BYTES: Final = 256 * 1024
"""The number of bytes at the end of a stream that are rendered; older drawing is not shown."""
# Without an erase or an alternate screen, what scrolled off cannot be seen: a few screenfuls are
# enough.
_SCREENFULS: Final = 4

_ALTERNATE: Final = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
_ERASE: Final = re.compile(rb"\x1b\[2J|\x1bc")
# What the emulator would print or stumble over, or fill all cells for without a change of the text
# (alignment, reverse video): shifts to the other character set (only binary data has them), strings
# (titles, links, clipboard), private and intermediate forms.
_UNSUPPORTED: Final = re.compile(
    rb"[\x0e\x0f]"
    rb"|\x1b#[0-9]?"
    rb"|\x1b\[\?(?:[0-9;]*;)?0*5(?:;[0-9;]*)?[hl]"
    rb"|\x1b[P\]X^_][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)?"
    rb"|\x1b\[[<=>][0-?]*[ -/]*[@-~]"
    rb"|\x1b\[[0-?]*[ -/]+[@-~]"
    rb"|\x1b\[\?[0-9;]*[^hl0-9;]"
    rb"|\x1b\[[0-?]*(?=[\x80-\xff])"
)
_BEFORE_ESCAPE: Final = re.compile(r"(?=[\x1b\x9b])")
_MAX_ATTACHED: Final = 16
"""Characters without a width that one cell takes; a terminal shows no more either."""
_MAX_FAILURES: Final = 100
"""What follows so many sequences that no terminal understands is not drawn."""
# The emulator reads as numbers what is none, and numbers that are too long.
_FAILURES: Final = (TypeError, ValueError, UnboundLocalError, LookupError)


@dataclass(frozen=True, slots=True)
class Screen:
    """``lines`` from the top, right-trimmed; the cursor counts from 0."""

    lines: tuple[str, ...]
    cursor_row: int
    cursor_column: int
    is_alternate: bool


class _Emulator(pyte.Screen):
    """The emulator, which would draw nothing of a text behind a character without a width.

    It knows those that Unicode calls combining. Joiners, selectors and the vowel signs of several
    scripts are others.
    """

    def draw(self, data: str) -> None:
        """Draw a text; a character without a width joins the one before it."""
        start = 0
        if not data.isascii():
            for place, char in enumerate(data):
                if _has_no_cell(char):
                    super().draw(data[start:place])
                    self._attach(char)
                    start = place + 1
        super().draw(data[start:])

    def _attach(self, char: str) -> None:
        line, column = self.buffer[self.cursor.y], self.cursor.x - 1
        if column > 0 and not line[column].data:
            # The second half of a wide character.
            column -= 1
        is_printed = pyte.screens.wcwidth(char) == 0
        if is_printed and column >= 0 and len(line[column].data) <= _MAX_ATTACHED:
            line[column] = line[column]._replace(data=line[column].data + char)


def _has_no_cell(char: str) -> bool:
    return pyte.screens.wcwidth(char) <= 0 and not unicodedata.combining(char)


class _TolerantScreen:
    """Passes events of the parser on to the emulator, and skips those that the emulator fails on.

    A terminal ignores parameters that it does not know.
    """

    def __init__(self, screen: pyte.Screen) -> None:
        self._screen = screen

    def __getattr__(self, event: str) -> Any:
        handle = getattr(self._screen, event)
        return partial(_skip_unknown, handle) if callable(handle) else handle


def _skip_unknown(handle: Callable[..., Any], *parameters: Any, **options: Any) -> None:
    with suppress(*_FAILURES):
        handle(*parameters, **options)


def render_screen(data: bytes, *, rows: int, cols: int) -> Screen:
    """Renders the screen of a terminal after ``data``, the end of a stream."""
    visible, is_alternate = _current_buffer(data[-SCREEN_BYTES:])
    drawn = _UNSUPPORTED.sub(b"", _visible_part(visible, None if is_alternate else rows))
    # The emulator knows one of the two ways to save the cursor's place and to go back.
    drawn = drawn.replace(b"\x1b[s", b"\x1b7").replace(b"\x1b[u", b"\x1b8")
    screen = _drawn(drawn.decode("utf-8", "replace"), rows, cols)
    rows_shown = (_row(screen.buffer[row], cols) for row in range(rows))
    lines = tuple(unseen.visible(line.rstrip()) for line in rows_shown)
    return Screen(lines, screen.cursor.y, min(screen.cursor.x, cols - 1), is_alternate)


def _row(cells: Mapping[int, pyte.screens.Char], cols: int) -> str:
    """The text of a row. Half of a wide character whose other half was overwritten is a blank."""
    shown = []
    column = 0
    while column < cols:
        data = cells[column].data or " "
        column += 1
        if pyte.screens.wcwidth(data[0]) == 2:
            if column < cols and not cells[column].data:
                column += 1
            else:
                data = " "
        shown.append(data)
    return "".join(shown)


def _drawn(text: str, rows: int, cols: int) -> pyte.Screen:
    """The emulator after ``text``. Sequences that its parser fails on are passed over."""
    screen = _Emulator(cols, rows)
    listener = cast(pyte.Screen, _TolerantScreen(screen))
    stream = pyte.Stream(listener, strict=False)
    # Decoded here, so that the emulator may follow ESC ( 0, with which programs draw their boxes.
    stream.use_utf8 = False
    with suppress(*_FAILURES):
        stream.feed(text)
        return screen
    screen.reset()
    _begin_anew(stream, listener)
    failures = 0
    for piece in _BEFORE_ESCAPE.split(text):
        try:
            stream.feed(piece)
        except _FAILURES:
            failures += 1
            if failures == _MAX_FAILURES:
                break
            # The screen stays.
            _begin_anew(stream, listener)
    return screen


def _begin_anew(stream: pyte.Stream, listener: pyte.Screen) -> None:
    stream.detach(listener)
    stream.attach(listener)


def draws_whole_screen(data: bytes, *, rows: int) -> bool:
    """True if nothing drawn before ``data`` can be on the screen after it."""
    is_new = _ALTERNATE.search(data) or _ERASE.search(data)
    return bool(is_new) or data.count(b"\n") >= rows


def _current_buffer(data: bytes) -> tuple[bytes, bool]:
    """The bytes drawn on the buffer that is shown now, and whether it is the alternate screen.

    The alternate screen forgets its past; the main screen keeps it.
    """
    main: list[bytes] = []
    start, is_alternate = 0, False
    for switch in _ALTERNATE.finditer(data):
        enters = switch[1] == b"h"
        if enters and not is_alternate:
            main.append(data[start : switch.start()])
        elif not enters and not is_alternate and not main:
            # Entered before the part we have: all of this was drawn on the alternate screen.
            main.append(b"")
        is_alternate, start = enters, switch.end()
    return (data[start:], True) if is_alternate else (b"".join(main) + data[start:], False)


def _visible_part(data: bytes, rows: int | None) -> bytes:
    """The bytes from the last erase on.

    With ``rows``, no more lines than can still be on a screen that scrolls.
    """
    erased = 0
    for match in _ERASE.finditer(data):
        erased = match.start()
    if rows is None:
        return data[erased:]
    position = len(data)
    for _ in range(rows * _SCREENFULS):
        position = data.rfind(b"\n", erased, position)
        if position < 0:
            return data[erased:]
    return data[position + 1 :]
