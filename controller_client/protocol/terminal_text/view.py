"""Terminal bytes as text a model can read. Pure: bytes in, text out; cost linear in the bytes.

UTF-8 is decoded without splitting a character, escape sequences (7-bit and C1) are removed, a
progress bar that redraws its line with carriage returns, backspaces or erase sequences collapses to
its last state, NUL and other control characters vanish. Characters that cannot be seen are spelled
out (:mod:`unseen`). Feeding the bytes in any pieces gives the same text as feeding them at once.
"""

import codecs
import re
from typing import Final

from controller_client.protocol.terminal_text.unseen import visible

MAX_SEQUENCE_CHARS: Final = 65_536
"""The longest OSC, DCS, PM, APC or SOS string.

A longer one was never meant as a string, and the text after this many characters is shown again.
"""
MAX_HELD_BYTES: Final = 4 * (MAX_SEQUENCE_CHARS + 4)
"""The largest number of bytes held back: the longest sequence, of four-byte characters."""
MAX_COLUMNS: Final = 512
"""Cursor movements reach no further, so a few bytes cannot blow up into a long line of blanks."""
MAX_KEPT_LINE_CHARS: Final = 65_536
"""A reader that forgets what is over keeps no longer line that has no end yet."""

_STRING_BODY = rf"[^\x07\x0a\x18\x1a\x1b\x90\x98\x9b-\x9f]{{0,{MAX_SEQUENCE_CHARS}}}"
_STRING_START = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d\x9e\x9f])"
_CSI_START = r"(?:\x1b\[|\x9b)"
_TOKEN: Final = re.compile(
    rf"""
      (?P<plain>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)
    | (?P<csi>{_CSI_START}(?P<params>[0-?]{{0,256}})(?P<middle>[ -/]{{0,16}})(?P<final>[@-~]))
    | (?P<string>{_STRING_START}{_STRING_BODY}(?:\x07|\x1b\\|\x9c)?)
    | (?P<broken>{_CSI_START}[0-?]{{0,256}}[ -/]{{0,16}})
    | (?P<escape>\x1b[ -/]{{0,16}}[0-~]?)
    | (?P<control>[\x00-\x1f\x7f-\x9f])
    """,
    re.VERBOSE | re.DOTALL,
)
# A tail that more bytes could still complete; matched at the last introducer only.
_PARTIAL: Final = re.compile(
    (
        rf"(?:{_CSI_START}[0-?]{{0,256}}[ -/]{{0,16}}|{_STRING_START}{_STRING_BODY}\x1b?|\x1b[ "
        r"-/]{0,16})\Z"
    ),
    re.DOTALL,
)
_INTRODUCERS: Final = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
SEQUENCE_STARTS: Final = tuple(char.encode() for char in _INTRODUCERS)
"""The bytes with which an escape sequence begins."""
_NEEDS_WORK: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Colours only vanish. Taken away all at once, they cost a twentieth of one token after the other.
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]{0,256}m")
# Some lines: whole ones, but for the last.
_LINES: Final = re.compile(r"(?s:.{1,512})[^\n]*\n?")
# ESC ( 0: the letters with which programs draw boxes.
_DRAWING: Final = {
    0x60 + index: char for index, char in enumerate("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")
}
# Cursor movements to another row: what follows is not a continuation of this line.
_ROW_MOVES: Final = frozenset("ABEFHdf")
# These save the place of the cursor, and go back to it.
_SAVES: Final = frozenset({"\x1b7", "\x1b[s", "\x9bs"})
_RESTORES: Final = frozenset({"\x1b8", "\x1b[u", "\x9bu"})
_PLACES: Final = _SAVES | _RESTORES


class TextView:
    """Incremental renderer: ``feed`` bytes, read ``text`` at any time."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._held = ""
        self._finished: list[str] = []
        self._line: list[str] = []
        self._column = 0
        self._is_drawing = False
        self._is_drawn_to_edge = False
        # A number that changes with each move to another row, and the place that a program saved.
        self._row = 0
        self._saved: tuple[int, int] | None = None

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Take the next bytes.

        ``final``: nothing follows, so an incomplete character or sequence is no longer held back.
        """
        text = self._held + self._decoder.decode(data, final)
        keep = len(text) if final else _complete_length(text)
        self._held = text[keep:]
        self._render(text[:keep])

    @property
    def text(self) -> str:
        """Everything rendered so far; lines end in a line feed."""
        return visible("".join(self._finished) + "".join(self._line))

    def forget(self, kept_chars: int) -> None:
        """Forget finished lines, but for the newest that have at most so many characters.

        Nothing moves up to them again. An unfinished line of more than MAX_KEPT_LINE_CHARS is
        forgotten, too.
        """
        finished = "".join(self._finished)
        cut = len(finished) - kept_chars
        if cut > 0:
            self._finished = [finished[finished.find("\n", cut - 1) + 1 :]]
        if len(self._line) > MAX_KEPT_LINE_CHARS:
            self._line.clear()
            self._column = 0

    def _render(self, text: str) -> None:
        if self._is_rendered_whole(text):
            return
        # No sequence goes on behind the end of a line, so only the lines around one need work.
        for lines in _LINES.findall(text):
            if not self._is_rendered_whole(lines):
                self._render_tokens(lines)

    def _is_rendered_whole(self, text: str) -> bool:
        """Take text that nothing acts on; returns False for any other."""
        plain = _COLOUR.sub("", text).replace("\r\n", "\n")
        is_new = not (self._line or self._column or self._is_drawing or self._is_drawn_to_edge)
        if not is_new or _NEEDS_WORK.search(plain):
            return False
        body, newline, rest = plain.rpartition("\n")
        self._finished.append(body + newline)
        self._row += bool(newline)
        self._write(rest)
        return True

    def _render_tokens(self, text: str) -> None:
        for token in _TOKEN.finditer(text):
            kind = token.lastgroup
            if kind == "plain":
                self._write(token[0])
            elif kind == "control":
                self._control(token[0])
            elif kind == "escape" or token[0] in _PLACES:
                self._escape(token[0])
            elif kind == "csi":
                self._control_sequence(token["params"], token["middle"], token["final"])

    def _escape(self, sequence: str) -> None:
        if sequence.startswith("\x1b("):
            self._is_drawing = sequence == "\x1b(0"
        elif sequence in _SAVES:
            self._saved = self._row, self._column
        elif sequence in _RESTORES:
            self._restore()

    def _restore(self) -> None:
        """Go back to the saved place if it is on this row, else leave the row."""
        if self._saved is None:
            return
        row, column = self._saved
        if row == self._row:
            self._column = min(column, max(len(self._line), MAX_COLUMNS))
        else:
            self._leave_row()

    def _leave_row(self) -> None:
        """End the line that a program moves away from: what follows does not go on in it."""
        self._row += 1
        if self._line:
            # A full screen is drawn to its edge with blanks.
            self._line[:] = "".join(self._line).rstrip(" ")
            self._end_line()

    def _write(self, run: str) -> None:
        if self._is_drawing:
            run = run.translate(_DRAWING)
        if len(self._line) < self._column:
            self._line.extend(" " * (self._column - len(self._line)))
        self._line[self._column : self._column + len(run)] = run
        self._column += len(run)

    def _control(self, char: str) -> None:
        if char == "\n":
            self._end_line()
        elif char == "\r":
            self._column = 0
        elif char == "\b":
            self._column = max(0, self._column - 1)

    def _end_line(self) -> None:
        self._row += 1
        line = "".join(self._line)
        # A program that clears what is to the right of its text draws a screen: blanks at the end
        # are its columns.
        self._finished.append((line.rstrip(" ") if self._is_drawn_to_edge else line) + "\n")
        self._line.clear()
        self._column = 0
        self._is_drawn_to_edge = False

    def _control_sequence(self, params: str, middle: str, final: str) -> None:
        """The few sequences that edit the current line; all others only vanish."""
        if middle or params.startswith(("<", "=", ">", "?")):
            return
        number = _first_number(params)
        count = min(number or 1, MAX_COLUMNS)
        if final == "K":
            self._erase_in_line(number)
        elif final == "C":
            self._column = min(self._column + count, max(self._column, MAX_COLUMNS))
        elif final == "D":
            self._column = max(0, self._column - count)
        elif final == "G":
            self._column = count - 1
        elif final == "P":
            del self._line[self._column : self._column + count]
        elif final == "@" and self._column < len(self._line) < MAX_COLUMNS:
            self._line[self._column : self._column] = " " * count
        elif final == "X":
            end = min(self._column + count, len(self._line))
            self._line[self._column : end] = " " * (end - self._column)
        elif final == "A" and len(self._line) <= MAX_COLUMNS and not "".join(self._line).strip():
            self._go_up(count)
        elif final in _ROW_MOVES:
            self._leave_row()

    def _go_up(self, rows: int) -> None:
        """Take back the blank lines that a line editor made room with.

        Go on in the line above them if the cursor moves up to that line.
        """
        self._row += 1
        self._line.clear()
        while rows and (line := self._last_line()) is not None and (rows == 1 or not line.strip()):
            self._finished.pop()
            rows -= 1
            if not rows:
                self._line.extend(line)

    def _last_line(self) -> str | None:
        """The last finished line, which is then the last item of ``_finished``.

        None if there is no such line, or the line is wider than a screen.
        """
        while self._finished and not self._finished[-1]:
            self._finished.pop()
        if not self._finished:
            return None
        last = self._finished[-1]
        if last.rfind("\n", max(0, len(last) - 2 - MAX_COLUMNS), len(last) - 1) >= 0:
            self._finished[-1:] = [line + "\n" for line in last[:-1].split("\n")]
            last = self._finished[-1]
        return last[:-1] if len(last) <= MAX_COLUMNS else None

    def _erase_in_line(self, mode: int) -> None:
        if mode == 0:
            del self._line[self._column :]
            self._is_drawn_to_edge = True
        elif mode == 1:
            # No row of a terminal is wider, and a longer line must not be written again each time.
            end = min(self._column + 1, len(self._line))
            begin = max(0, end - MAX_COLUMNS)
            self._line[begin:end] = " " * (end - begin)
        else:
            self._line.clear()


def text_of(data: bytes) -> str:
    """The whole of ``data`` as text.

    An incomplete character at the end becomes U+FFFD; an incomplete sequence vanishes.
    """
    view = TextView()
    view.feed(data, final=True)
    return view.text


def complete_length(data: bytes) -> int:
    """The number of leading bytes of ``data`` that end at a whole character and escape sequence.

    A page may end there.
    """
    end = len(data) - _partial_character_bytes(data)
    # Only the tail can be incomplete. Surrogates stand for invalid bytes, so the text's length can
    # be counted back in bytes.
    tail = data[max(0, end - MAX_SEQUENCE_CHARS - 64) : end].decode("utf-8", "surrogateescape")
    return end - len(tail[_complete_length(tail) :].encode("utf-8", "surrogateescape"))


def sequence_rest(begun: bytes, data: bytes) -> int:
    """The number of leading bytes of ``data`` that end the escape sequence ``begun`` before it.

    Sequences that this one leads to are counted, too.
    """
    text = (begun + data[:MAX_SEQUENCE_CHARS]).decode("utf-8", "surrogateescape")
    begun_chars, position = len(begun.decode("utf-8", "surrogateescape")), 0
    while position < begun_chars and (token := _TOKEN.match(text, position)) is not None:
        position = token.end()
    return max(0, len(text[:position].encode("utf-8", "surrogateescape")) - len(begun))


def _complete_length(text: str) -> int:
    start = max(text.rfind(char) for char in _INTRODUCERS)
    if start < 0:
        return len(text)
    if text[start] == "\x1b" and start == len(text) - 1:
        opener = max(text.rfind(char, 0, start) for char in _INTRODUCERS)
        if opener >= 0 and _PARTIAL.match(text, opener):
            return opener
    return start if _PARTIAL.match(text, start) else len(text)


def _partial_character_bytes(data: bytes) -> int:
    """Bytes at the end that begin a UTF-8 character whose rest is missing: 0 to 3."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = (
            2
            if 0xC2 <= byte <= 0xDF
            else 3
            if 0xE0 <= byte <= 0xEF
            else 4
            if 0xF0 <= byte <= 0xF4
            else 1
        )
        return back if need > back else 0
    return 0


def _first_number(params: str) -> int:
    digits = params.split(";", 1)[0].split(":", 1)[0]
    return int(digits[:6]) if digits.isdigit() else 0
