"""The rows on which a program puts its text: a screen that is drawn, or lines that follow."""

from typing import Final

_TOP: Final = 1


class Places:
    """The places to which the cursor was sent since a program last asked for a line."""

    def __init__(self) -> None:
        self._rows: frozenset[int] = frozenset()
        self._is_back = False
        """The cursor was sent to a place after lines that followed an earlier place."""
        self._has_lines = False
        self._is_home = False
        self._saved = (self._rows, self._is_back)

    @property
    def is_drawn(self) -> bool:
        """True if text was placed anywhere but at the top, where cleared screens begin."""
        return bool(self._rows - {_TOP})

    @property
    def are_many(self) -> bool:
        """True if text was placed on several rows, as on a full screen."""
        return self._is_back or len(self._rows) > 1

    def forget(self) -> None:
        """Forget all places: the screen is cleared, or the program asks for a line."""
        self._rows, self._is_back, self._has_lines = frozenset(), False, False

    def on_text(self, output: bytes, start: int, end: int) -> None:
        """Take output between two places, or behind the last one."""
        if self._rows and not self._has_lines:
            self._has_lines = output.find(b"\n", start, end) >= 0

    def go_to(self, row: int, column: int) -> None:
        """Take the next place of the cursor."""
        self._is_back |= self._has_lines
        self._has_lines = False
        # The first column of the top row is where a cleared screen begins.
        self._is_home = row == _TOP and column == 1
        # Two rows tell all that is asked, and a program can name any number of them.
        if len(self._rows) < 2:
            self._rows |= {row if row > _TOP or self._is_home else 0}

    def go_up(self) -> None:
        """Take a step to a row above, on a full screen."""
        self._is_back |= self._has_lines

    def erase(self, part: bytes) -> None:
        """Take the erasure of the whole screen, or of what is below the cursor."""
        is_all = part in {b"2", b"3"} or (self._is_home and not self._has_lines)
        if is_all and part != b"1":
            self.forget()

    def save(self) -> None:
        """Save the places, as the cursor is saved."""
        self._saved = self._rows, self._is_back

    def restore(self) -> None:
        """Forget the places since the cursor was saved: they were an aside."""
        self._rows, self._is_back = self._saved
        self._has_lines = False
