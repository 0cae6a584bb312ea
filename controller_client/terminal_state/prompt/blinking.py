"""A picture that blinks: two that take turns, as of a cursor that the program draws.

Such output is no sign of work, and tells nothing new. It would never let a silence begin.
"""

import re
from collections import deque
from typing import Final

from controller_client.terminal_state.prompt.output_modes import DRAWN_CURSOR

_PAUSE_SECONDS: Final = 0.1
"""A longer pause divides two pictures."""
_MOST_BYTES: Final = 8192
"""A longer picture is no cursor that blinks."""
_PLACE: Final = re.compile(rb"\x1b\[[0-9;]*[Hf]")
_ROWS_ABOVE: Final = re.compile(rb"(?:\r|\x1b\[[0-9]*[DGK])*\x1b\[[0-9]*[AF]")


class Blinking:
    """The last pictures, each the output without a pause in it."""

    def __init__(self) -> None:
        self._pictures: deque[bytes] = deque(maxlen=3)
        self._picture = b""
        self._drawn_at = 0.0

    def goes_on(self, output: bytes, now: float, *, is_full_screen: bool = True) -> bool:
        """Take output; return whether it belongs to a picture that is due again.

        A picture is due if both of the last two pictures, and the one before, took turns with it.
        Below other text a mark of work may blink, too. So a cursor has to be seen in one of them.
        """
        if now - self._drawn_at > _PAUSE_SECONDS:
            self._pictures.append(self._picture)
            self._picture = b""
        self._drawn_at = now
        self._picture = (self._picture + output)[: _MOST_BYTES + 1]
        if len(self._pictures) < 3 or len(self._picture) > _MOST_BYTES:
            return False
        before, due, last = self._pictures
        if before != last or not due.startswith(self._picture):
            return False
        # Text that is drawn at no place moves on: dots of progress are all alike.
        if is_full_screen:
            return bool(_PLACE.match(due))
        is_cursor = bool(DRAWN_CURSOR.search(due)) != bool(DRAWN_CURSOR.search(last))
        return is_cursor and all(map(_ROWS_ABOVE.match, (due, last)))

    def forget(self) -> None:
        """Forget all pictures: an input or a new size may change them."""
        self._pictures.clear()
        self._picture = b""
