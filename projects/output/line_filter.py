"""Lines of a stream for a search; blocks of lines that cannot match are passed over at once. Pure.

A block of whole lines that would be shown as it is (no control characters beyond line ends and
colours, sound UTF-8) is searched at once, with the expression's ``^`` and ``$`` at each line; only
if it may match are its lines looked at. A block may match where no line does, since an expression
may match line feeds; never the other way round.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from projects.output.plain_lines import MAX_LINE_BYTES, Line, LineSplitter

# The text's own beginning and end, and flags by which "^" is no line's: then nothing is passed
# over.
_OF_THE_WHOLE: Final = re.compile(r"\\[AzZCQ]|\(\?(?!:|i\)|i:|P?<)")
_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n") + b"\x7f"
_C1: Final = re.compile(rb"\xc2[\x80-\x9f]")
# Of what vanishes from a line: colours, and erasing the rest of a line at its end, which is where
# the cursor is if nothing moves it.
_COLOURS: Final = re.compile(rb"\x1b\[(?:[0-9;]{0,64}m|0?K)")


class Passed(NamedTuple):
    """Whole lines, none of which matches."""

    offset: int
    data: bytes

    def last_lines(self, count: int) -> list[Line]:
        """The newest ``count`` of them at most; their offsets are not told."""
        return (
            [Line(-1, raw, True) for raw in self.data[:-1].rsplit(b"\n", count)[-count:]]
            if count
            else []
        )

    def lines(self) -> Iterator[Line]:
        """All lines of the block, each with its offset."""
        return LineSplitter(self.offset).feed(self.data)


def block_pattern(pattern: str) -> str | None:
    """The expression for blocks that goes with an expression for lines; None: there is none."""
    return None if _OF_THE_WHOLE.search(pattern) else f"(?m){pattern}"


class LineFilter:
    """Takes the bytes of one stream piece by piece, from ``offset`` on.

    ``compiled`` is of ``block_pattern``; None passes nothing over.
    """

    def __init__(self, compiled: Any, offset: int) -> None:
        self._compiled = compiled
        self._splitter = LineSplitter(offset)
        self._held = b""

    def feed(self, piece: bytes) -> Iterator[Line | Passed]:
        """Yields the lines and blocks that are complete with these bytes, in order."""
        data, start = self._held + piece, 0
        self._held = b""
        while start < len(data):
            end = data.rfind(b"\n", start, start + MAX_LINE_BYTES) + 1
            if not end and len(data) - start < MAX_LINE_BYTES and not self._splitter.is_within_line:
                self._held = data[start:]
                return
            # A line that is longer than any may be counts as several: all of it at once, so that
            # what follows begins a line.
            end = end or data.find(b"\n", start) + 1 or len(data)
            yield from self._block(data[start:end])
            start = end

    def _block(self, block: bytes) -> Iterator[Line | Passed]:
        if self._splitter.is_within_line or len(block) > MAX_LINE_BYTES or self._may_match(block):
            yield from self._splitter.feed(block)
        else:
            yield Passed(self._splitter.offset, block)
            self._splitter.pass_over(len(block))

    def finish(self, next_offset: int | None = None) -> Iterator[Line]:
        """The line that has no end yet. The stream goes on at ``next_offset`` behind a gap."""
        yield from self._splitter.feed(self._held)
        self._held = b""
        yield from self._splitter.finish(next_offset)

    def _may_match(self, block: bytes) -> bool:
        if self._compiled is None or not (block.isascii() or _is_sound(block)):
            return True
        shown = block.replace(b"\r\n", b"\n")
        if b"\x1b" in shown:
            shown = _COLOURS.sub(b"", shown)
        if len(shown.translate(None, _CONTROLS)) != len(shown):
            return True
        return self._compiled.search(shown) is not None


def _is_sound(block: bytes) -> bool:
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return _C1.search(block) is None
