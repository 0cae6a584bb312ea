"""The terminal as its output shows it: modes, shell marks, the text left of the cursor, queries.

This is no emulator: it reads only what the verdict needs, wherever the output is cut into chunks.
"""

import re
from typing import Final

from controller_client.terminal_state.prompt.drawn_text import left_of_cursor, question
from controller_client.terminal_state.prompt.places import Places

TAIL_BYTES: Final = 4096
CARRY_BYTES: Final = 64
MAX_ANSWERS: Final = 16

_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[(?P<mark>[?>=]?)(?P<params>[0-9;]{0,60})(?P<final>[hlcnHdfsuJA])"
    rb"|\](?P<osc>1[0-2]);\?(?:\x07|\x1b\\)"
    rb"|\]133;(?P<shell>[A-D])"
    rb"|(?P<cursor>[78])"
    rb"|(?P<reset>c))"
)
_UNFINISHED: Final = re.compile(
    rb"\x1b(?:\[[?>=]?[0-9;]*|\](?:1[0-2]?(?:;(?:\?\x1b?)?)?|13|133;?)?)?\Z"
)
_ESCAPES: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ "
    rb"-/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()*+#%][0-9A-Za-z@]|[ "
    rb"-/]*[0-~])"
)
# A row with a pointer or a round mark, and a row of the same list below it.
_MENU: Final = re.compile(
    r"(?:^|\n)\W{0,6}[\u276f\u203a\u25b8\u25ba\u27a4\u25cf\u25c9\u25b6] ?\S[^\n]*\n\W{2,8}\w"
)
# One inverted cell: a program that hides the cursor draws one of its own where text is entered.
DRAWN_CURSOR: Final = re.compile(
    rb"\x1b\[7m(?:\x1b\[8m)?(?:[ -~]|[\xc2-\xf4][\x80-\xbf]+)(?:\x1b\[28m)?\x1b\[(?:27|0)?m"
)
_MOUSE: Final = frozenset({b"1000", b"1002", b"1003"})
_FRAME_LINE: Final = b"\xe2\x94\x82"
_LINE_DRAWING: Final = b"\x1b(0"
_ALTERNATE: Final = frozenset({b"47", b"1047", b"1049"})

# Colours and identity of a plain xterm. Without an answer a program blocks, or falls back.
_COLOURS: Final = {
    b"10": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"11": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"12": b"\x1b]12;rgb:ffff/ffff/ffff\x1b\\",
}
_ANSWERS: Final = {
    (b"", b"5", b"n"): b"\x1b[0n",
    (b"", b"6", b"n"): b"\x1b[1;1R",
    (b"?", b"6", b"n"): b"\x1b[?1;1R",
    (b"", b"", b"c"): b"\x1b[?62;22c",
    (b"", b"0", b"c"): b"\x1b[?62;22c",
    (b">", b"", b"c"): b"\x1b[>1;10;0c",
    (b">", b"0", b"c"): b"\x1b[>1;10;0c",
}


class OutputModes:
    """The modes of the terminal after the last byte of output."""

    def __init__(self) -> None:
        self.is_alternate_screen = False
        self.is_bracketed_paste = False
        self.knows_bracketed_paste = False
        """It was on at some time, so a line editor that reads lines switches it on."""
        self.is_cursor_hidden = False
        self.is_application_cursor = False
        self.is_at_shell_mark = False
        self.takes_mouse = False
        """The program asked for clicks, so it has drawn something to click on."""
        self._is_blank = False
        self._blank_from = 0
        self._places = Places()
        self._placed_at = 0
        self._carry = b""
        self._tail = b""
        self._line: str | None = ""
        self._question: str | None = ""

    def feed(self, data: bytes) -> bytes:
        """Take output, and return the answers to the queries that end in it, one for each."""
        if data:
            self._tail = (
                data[-TAIL_BYTES:] if len(data) >= TAIL_BYTES else (self._tail + data)[-TAIL_BYTES:]
            )
            self._line = self._question = None
        if not self._carry and b"\x1b" not in data:
            self._places.on_text(data, 0, len(data))
            self._is_blank &= not data.strip()
            return b""
        window = self._carry + data
        self._placed_at = self._blank_from = 0
        answers = [answer for match in _SEQUENCE.finditer(window) if (answer := self._take(match))]
        self._places.on_text(window, self._placed_at, len(window))
        unfinished = _UNFINISHED.search(window, max(0, len(window) - CARRY_BYTES))
        self._carry = unfinished[0] if unfinished else b""
        if self._is_blank:
            drawn = window[self._blank_from : len(window) - len(self._carry)]
            self._is_blank = not plain_text(drawn).strip()
        return b"".join(answers[:MAX_ANSWERS])

    def forget_text(self) -> None:
        """Forget the text so far as a prompt: an input has answered it."""
        self._tail = b""
        self._line = self._question = ""

    def forget_drawing(self) -> None:
        """Forget where text was placed: the program that drew has ended, or asks for lines now."""
        self._places.forget()

    @property
    def is_drawn(self) -> bool:
        """True if text was placed on the screen, the alternate one or not."""
        return self._places.is_drawn

    @property
    def is_drawn_on_many_rows(self) -> bool:
        """True if text was placed on several rows, as by a program that draws a full screen."""
        return self._places.are_many

    @property
    def is_input_screen(self) -> bool:
        """True in a state in which programs take input: a full screen, an editor, a shell mark.

        A full screen without any text is one that the program has not drawn yet.
        """
        if self.is_alternate_screen and self._is_blank:
            return False
        return (
            self.is_alternate_screen
            or self.is_bracketed_paste
            or self.is_cursor_hidden
            or self.is_at_shell_mark
        )

    @property
    def line(self) -> str:
        """The text left of the cursor, on its line; empty when the cursor is at the start."""
        if self._line is None:
            self._line = left_of_cursor(self._tail)
        return self._line

    @property
    def has_frames(self) -> bool:
        """True if the newest output has lines of frames, as a form does."""
        return _FRAME_LINE in self._tail or _LINE_DRAWING in self._tail

    @property
    def has_menu(self) -> bool:
        """True if a list was shown with a mark at one row, and the cursor is hidden."""
        return self.is_cursor_hidden and _MENU.search(plain_text(self._tail)) is not None

    @property
    def has_drawn_cursor(self) -> bool:
        """True if the program hides the cursor and draws one of its own, where text is entered."""
        return self.is_cursor_hidden and DRAWN_CURSOR.search(self._tail) is not None

    @property
    def question(self) -> str:
        """The text of a form above its entry field, or beside it."""
        if self._question is None:
            self._question = question(self._tail)
        return self._question

    @property
    def drawn_question(self) -> str:
        """The question of a program that draws the cursor and the entry itself, else empty."""
        return self.question if self.is_cursor_hidden and not self.is_alternate_screen else ""

    def _take(self, match: re.Match[bytes]) -> bytes | None:
        if match["final"]:
            return self._take_control(match)
        if match["osc"]:
            return _COLOURS[match["osc"]]
        if match["cursor"]:
            self._save_or_restore(is_saved=match["cursor"] == b"7")
        elif match["shell"]:
            self.is_at_shell_mark = match["shell"] == b"B"
        else:
            self._reset()
        return None

    def _take_control(self, match: re.Match[bytes]) -> bytes | None:
        mark, params, final = match["mark"], match["params"], match["final"]
        if final in b"nc":
            return _ANSWERS.get((mark, params, final))
        if final in b"hl":
            for mode in params.split(b";") if mark == b"?" else ():
                self._set_mode(mode, is_on=final == b"h", end=match.end())
        elif not mark:
            self._take_place(match)
        return None

    def _take_place(self, match: re.Match[bytes]) -> None:
        params, final = match["params"], match["final"]
        if final in b"su":
            if not params:
                self._save_or_restore(is_saved=final == b"s")
            return
        self._places.on_text(match.string, self._placed_at, match.start())
        self._placed_at = match.end()
        if final in b"Hfd":
            row, _, column = params.partition(b";")
            self._places.go_to(int(row or 1), int(column) if column.isdigit() else 1)
        elif final == b"J":
            self._places.erase(params)
        elif self.is_alternate_screen:
            self._places.go_up()

    def _save_or_restore(self, *, is_saved: bool) -> None:
        if is_saved:
            self._places.save()
        else:
            self._places.restore()

    def _set_mode(self, mode: bytes, *, is_on: bool, end: int) -> None:
        if mode == b"2004":
            self.is_bracketed_paste = is_on
            self.knows_bracketed_paste = True
        elif mode == b"25":
            self.is_cursor_hidden = not is_on
        elif mode == b"1":
            self.is_application_cursor = is_on
        elif mode in _MOUSE:
            self.takes_mouse = is_on
        elif mode in _ALTERNATE:
            self.is_alternate_screen = self._is_blank = is_on
            self._blank_from = end

    def _reset(self) -> None:
        self.is_alternate_screen = self.is_bracketed_paste = self.is_cursor_hidden = False
        self.is_application_cursor = self.is_at_shell_mark = self.takes_mouse = False
        self._places.forget()


def plain_text(raw: bytes) -> str:
    """Return the text of output without its escape sequences."""
    return _ESCAPES.sub(b"", raw).decode("utf-8", "replace").rstrip("\x00")
