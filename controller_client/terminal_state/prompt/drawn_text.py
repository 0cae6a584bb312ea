"""The text of a terminal around its cursor, drawn from the newest output as a terminal draws it.

Only what moves the cursor along the text or changes text is followed. The size of the terminal is
not known: lines do not wrap, and nothing scrolls.
"""

import re
import unicodedata
from typing import Final

MAX_COLUMNS: Final = 1000
_TAB_COLUMNS: Final = 8
_FLOATING: Final = -1_000_000
"""The row of the cursor before output has placed it: far from the rows that output can name."""

_TOKEN: Final = re.compile(
    rb"\x1b\[(?P<params>[0-?]*)[ -/]*(?P<final>[@-~])"
    rb"|\x1b[()](?P<charset>[0-9A-Za-z])"
    rb"|(?:\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\)"
    rb"|\x1b(?P<escape>[78DEM])"
    rb"|\x1b[ -/]*[0-~]"
    rb"|(?P<control>[\x08-\x0f])"
    rb"|(?P<text>[^\x00-\x1f\x7f]+)"
)
_TO_OTHER_ROWS: Final = re.compile(rb"\x1b(?:\[[0-9;]*[ABEFHdefu]|[8DEM]|\[\?(?:1049|1047|47)[hl])")
_TO_THE_RIGHT: Final = re.compile(rb"\t|\x1b\[[0-9;]*[CGa`]")
_UNSEEN: Final = re.compile(rb"\x1b\[\??[0-9;]*[hlm]")
_PLAIN: Final = re.compile(rb"\n?((?:[ -~]|\x1b\[\??[0-9;]*[hlm])*)")
_ALTERNATE: Final = frozenset({b"?1049", b"?1047", b"?47"})
_ZERO_WIDTH_JOINERS: Final = "\u200c\u200d"
_BOX: Final = "\u2502"
_FRAME: Final = " |+-_" + "".join(map(chr, range(0x2500, 0x25A0)))
_ITEM: Final = re.compile(
    "[\u25cf\u25cb\u25ef\u25c9\u25fb\u25fc\u25a2\u2610\u2611\u276f\u203a\u00bb>*]\\s"
)
"""The first characters of an item in a menu: a bullet, a box, or the mark of the choice."""


class DrawnText:
    """The rows of text that output draws, and the place of the cursor."""

    def __init__(self) -> None:
        self._rows: dict[int, list[str]] = {}
        # A wide character fills its first cell; its second cell is empty.
        self._row, self._column = _FLOATING, 0
        self._saved = (_FLOATING, 0)
        self._main: tuple[dict[int, list[str]], int, int] | None = None
        self._draws_lines = False

    @property
    def left_of_cursor(self) -> str:
        """The text left of the cursor on its row; empty if only blanks stand there."""
        cells = self._rows.get(self._row, [])[: self._column]
        text = "".join(cells)
        return text + " " * (self._column - len(cells)) if text.strip() else ""

    @property
    def question(self) -> str:
        """The paragraph with words that ends nearest above the cursor, or at its row.

        Empty if the row is an item of a menu.
        """
        rows = self._rows
        row = max((row for row in rows if row <= self._row and self._words(row)), default=None)
        if row is None or _ITEM.match(self._words(row)):
            return ""
        lines: list[str] = []
        while words := self._words(row):
            lines.insert(0, words)
            row -= 1
        return " ".join(lines)

    def _words(self, row: int) -> str:
        text = "".join(self._rows.get(row, [])).strip(_FRAME)
        return text if any(map(str.isalnum, text)) else ""

    def draw(self, output: bytes) -> None:
        """Draw output, in which escape sequences may be cut off at both ends."""
        for token in _TOKEN.finditer(output):
            if token["text"]:
                self._write(token["text"].decode("utf-8", "replace"))
            elif token["final"]:
                self._control(token["params"], token["final"])
            elif token["control"]:
                self._move(token["control"])
            elif token["escape"]:
                self._escape(token["escape"])
            elif token["charset"]:
                self._draws_lines = token["charset"] == b"0"

    def _write(self, text: str) -> None:
        if self._draws_lines:
            text = "".join(_BOX if "_" <= letter <= "~" else letter for letter in text)
        symbols = list(text) if text.isascii() else _cells_of(text)
        row, start = self._current(), self._column
        row += [" "] * (start - len(row))
        if start and not text.isascii() and _is_mark(text[0]):
            row[start - 1] += symbols.pop(0)
        row[start : start + len(symbols)] = symbols
        self._column += len(symbols)

    def _current(self) -> list[str]:
        return self._rows.setdefault(self._row, [])

    def _move(self, control: bytes) -> None:
        match control:
            case b"\r":
                self._column = 0
            case b"\x08":
                self._column = max(0, self._column - 1)
            case b"\t":
                self._column += _TAB_COLUMNS - self._column % _TAB_COLUMNS
            case b"\x0e" | b"\x0f":
                self._draws_lines = control == b"\x0e"
            case _:
                self._row += 1

    def _escape(self, escape: bytes) -> None:
        match escape:
            case b"7":
                self._saved = self._row, self._column
            case b"8":
                self._row, self._column = self._saved
            case b"M":
                self._row -= 1
            case _:
                self._row += 1
                self._column = 0 if escape == b"E" else self._column

    def _control(self, params: bytes, final: bytes) -> None:
        if params[:1] in {b"?", b">", b"=", b"<"}:
            if params in _ALTERNATE and final in b"hl":
                self._switch_screen(is_alternate=final == b"h")
            return
        first, _, second = params.partition(b";")
        count = max(1, _number(first))
        if final in b"AFBeEdHf":
            self._change_row(final, count, max(1, _number(second)))
        elif final in b"CaDG`":
            self._change_column(final, count)
        elif final in b"JK":
            self._erase(first, is_screen=final == b"J")
        elif final in b"su" and not params:
            self._escape(b"7" if final == b"s" else b"8")
        elif final == b"P":
            del self._current()[self._column : self._column + count]
        elif final in b"@X":
            self._insert_blanks(count, is_over=final == b"X")

    def _change_row(self, final: bytes, count: int, column: int) -> None:
        if final in b"dHf":
            self._row = count
        else:
            self._row += -count if final in b"AF" else count
        if final in b"EF":
            self._column = 0
        elif final in b"Hf":
            self._column = min(column, MAX_COLUMNS) - 1

    def _change_column(self, final: bytes, count: int) -> None:
        column = {b"D": self._column - count, b"G": count - 1, b"`": count - 1}.get(
            final, self._column + count
        )
        self._column = min(max(0, column), MAX_COLUMNS)

    def _insert_blanks(self, count: int, *, is_over: bool) -> None:
        start = self._column
        row = self._current()
        row[start : start + count if is_over else start] = [" "] * min(count, MAX_COLUMNS)

    def _erase(self, part: bytes, *, is_screen: bool) -> None:
        row, column = self._current(), self._column
        is_rest, is_beginning = part in {b"", b"0"}, part == b"1"
        if is_screen:
            self._rows = {
                other: cells
                for other, cells in self._rows.items()
                if (is_rest and other < self._row) or (is_beginning and other > self._row)
            }
        left = row[:column] if is_rest else [" "] * (column + 1)
        right = row[column + 1 :] if is_beginning else []
        self._rows[self._row] = left + right

    def _switch_screen(self, *, is_alternate: bool) -> None:
        if is_alternate:
            self._main = self._rows, self._row, self._column
            self._rows = {}
        else:
            self._rows, self._row, self._column = self._main or ({}, _FLOATING, 0)
            self._main = None


def left_of_cursor(output: bytes) -> str:
    """Return the text left of the cursor after output; empty at the start of a line."""
    is_placed = _TO_OTHER_ROWS.search(output) is not None
    stretch = output if is_placed else _end_of(output)
    if not is_placed and (plain := _PLAIN.fullmatch(stretch)):
        # Most prompts are text, colours and modes: nothing has to be drawn to read them.
        text = _UNSEEN.sub(b"", plain[1]).decode("ascii")
        return text if text.strip() else ""
    drawn = DrawnText()
    drawn.draw(stretch)
    return drawn.left_of_cursor


def question(output: bytes) -> str:
    """Return the question of a form: the nearest paragraph above the cursor or at its row."""
    drawn = DrawnText()
    drawn.draw(output)
    return drawn.question


def _end_of(output: bytes) -> bytes:
    # The row of the cursor begins after the last line end. What is older than the last return to
    # the margin is seen only if the cursor steps over it.
    line = output[output.rfind(b"\r\n") + 1 :]
    stretch = line[line.rfind(b"\r") + 1 :]
    return line if _TO_THE_RIGHT.search(stretch) else stretch


def _number(digits: bytes) -> int:
    return int(digits) if digits.isdigit() else 0


def _cells_of(text: str) -> list[str]:
    cells: list[str] = []
    for symbol in text:
        if _is_mark(symbol) and cells:
            cells[-1] += symbol
        elif unicodedata.category(symbol) != "Cf":
            cells.append(symbol)
            if unicodedata.east_asian_width(symbol) in "WF":
                cells.append("")
    return cells


def _is_mark(symbol: str) -> bool:
    # A mark is shown on the character before it, as accents are.
    return unicodedata.category(symbol) in {"Mn", "Me"} or symbol in _ZERO_WIDTH_JOINERS
