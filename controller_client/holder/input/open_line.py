"""Follows what was typed since the last end of a line: a secret behind it would be joined to it.

On a terminal that edits lines the kernel keeps such a part, or the program has got it by an
end-of-file character, which hands over a line without ending it. In doubt there is a part: erased
characters still count, and so does what the program had the kernel throw away.
"""

import re
import sys
import termios
from functools import lru_cache
from typing import Final, NamedTuple, Self

_DISABLED: Final = b"\xff" if sys.platform == "darwin" else b"\x00"
_IFLAG, _LFLAG, _CC = 0, 3, 6


class LineKeys(NamedTuple):
    """The characters by which a terminal that edits lines treats the line, as it is set.

    ``ends`` end it. ``end_of_file`` gives it to the program as it is, and ``hands_over`` do so with
    themselves behind it. ``clears`` empty it. ``quotes`` takes the meaning from the next character.
    """

    ends: bytes = b"\n\r"
    end_of_file: bytes = b"\x04"
    hands_over: bytes = b""
    clears: bytes = b"\x03\x15\x1a\x1c"
    quotes: bytes = b"\x16"

    @classmethod
    def read(cls, descriptor: int) -> Self | None:
        """Read them; None if the terminal edits no lines, or is gone."""
        try:
            attributes = termios.tcgetattr(descriptor)
        except termios.error:
            return None
        flags, translation, characters = attributes[_LFLAG], attributes[_IFLAG], attributes[_CC]
        if not flags & termios.ICANON:
            return None

        def those(*indexes: int) -> bytes:
            return b"".join(characters[index] for index in indexes).replace(_DISABLED, b"")

        has_return = translation & termios.ICRNL and not translation & termios.IGNCR
        signals = (termios.VINTR, termios.VQUIT, termios.VSUSP)
        flushes = flags & termios.ISIG and not flags & termios.NOFLSH
        return cls(
            ends=(b"" if translation & termios.INLCR else b"\n") + (b"\r" if has_return else b""),
            end_of_file=those(termios.VEOF),
            hands_over=those(termios.VEOL, termios.VEOL2),
            clears=those(termios.VKILL, *(signals if flushes else ())),
            quotes=those(termios.VLNEXT) if flags & termios.IEXTEN else b"",
        )


class OpenLine:
    """The line that was begun and not ended."""

    def __init__(self) -> None:
        self._is_begun = False
        self._is_handed_over = False
        self._is_quoting = False

    @property
    def holds_part(self) -> bool:
        """True if the kernel or the program may have a part of a line."""
        return self._is_begun or self._is_handed_over

    def typed(self, data: bytes, keys: LineKeys | None) -> None:
        """Take note of typed bytes. Without ``keys`` the program reads each byte by itself."""
        if keys is None:
            self._is_begun = self._is_handed_over = self._is_quoting = False
            return
        for piece in _pieces(keys).findall(data):
            self._take(piece, keys)

    def clear(self) -> None:
        """Take note that the kernel threw away what was not read."""
        self._is_begun = self._is_quoting = False

    def _take(self, piece: bytes, keys: LineKeys) -> None:
        if self._is_quoting or piece not in b"".join(keys):
            self._is_begun, self._is_quoting = True, False
        elif piece in keys.quotes:
            self._is_begun = self._is_quoting = True
        elif piece in keys.clears:
            self._is_begun = False
        else:
            # On an empty line the character is the end of the file, and hands over nothing.
            is_part = self._is_begun and piece in keys.end_of_file
            self._is_handed_over = is_part or piece in keys.hands_over
            self._is_begun = False


@lru_cache(maxsize=8)
def _pieces(keys: LineKeys) -> re.Pattern[bytes]:
    """Finds each special character, and the first one of each run of others."""
    special = re.escape(b"".join(keys))
    if not special:
        return re.compile(rb"[\x00-\xff]")
    return re.compile(b"[" + special + b"]|(?<![^" + special + b"])[^" + special + b"]")
