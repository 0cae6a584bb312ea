"""A stream of bytes as plain lines, each with the offset where it begins.

Pure; cost linear in the bytes.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from controller_client.protocol.terminal_text.unseen import visible
from controller_client.protocol.terminal_text.view import text_of

MAX_LINE_BYTES: Final = 64 * 1024
"""A longer line counts as several."""
_NEEDS_WORK: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class Line(NamedTuple):
    """``raw`` without its line feed; ``is_ended``: it had one."""

    offset: int
    raw: bytes
    is_ended: bool

    @property
    def text(self) -> str:
        """Without escape sequences, redrawn parts in their last state."""
        raw = self.raw.removesuffix(b"\r")
        return text_of(raw) if _NEEDS_WORK.search(raw) else visible(raw.decode(errors="replace"))

    @property
    def is_redrawn(self) -> bool:
        """A carriage return within it: progress bars do that."""
        return b"\r" in self.raw.removesuffix(b"\r")


class LineSplitter:
    """Takes the bytes of a stream piece by piece."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._held = b""

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that are complete with these bytes."""
        *lines, rest = (self._held + data).split(b"\n")
        for raw in lines:
            yield from self._pieces(raw)
            yield Line(self._offset, raw[(len(raw) // MAX_LINE_BYTES) * MAX_LINE_BYTES :], True)
            self._offset += len(raw) % MAX_LINE_BYTES + 1
        yield from self._pieces(rest)
        self._held = rest[(len(rest) // MAX_LINE_BYTES) * MAX_LINE_BYTES :]

    def _pieces(self, raw: bytes) -> Iterator[Line]:
        for start in range(0, len(raw) // MAX_LINE_BYTES * MAX_LINE_BYTES, MAX_LINE_BYTES):
            yield Line(self._offset, raw[start : start + MAX_LINE_BYTES], False)
            self._offset += MAX_LINE_BYTES

    def finish(self, next_offset: int | None = None) -> Iterator[Line]:
        """The line that has no end yet, if there is one.

        The stream goes on at ``next_offset`` behind a gap.
        """
        if self._held:
            yield Line(self._offset, self._held, False)
        self._offset = self._offset + len(self._held) if next_offset is None else next_offset
        self._held = b""

    def pass_over(self, size: int) -> None:
        """Whole lines that nobody looks at, where a line begins."""
        self._offset += size

    @property
    def is_within_line(self) -> bool:
        """Bytes of a line are held that has no end yet."""
        return bool(self._held)

    @property
    def offset(self) -> int:
        """The offset of the line that has no end yet."""
        return self._offset
