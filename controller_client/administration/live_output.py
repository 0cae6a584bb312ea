"""Output of a program on an operator's terminal, while it comes: the text that a server shows.

Nothing that the program writes reaches the terminal but as text (``terminal_text``). What the
program draws again is drawn again here, by a few sequences of ours.
"""

import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from os import terminal_size
from shutil import get_terminal_size
from typing import Final

from controller_client.protocol.terminal_text.view import TextView

_KEPT_CHARS: Final = 16_384
"""A program can still draw again in so much of its newest text."""
_TAB_COLUMNS: Final = 8
_READ_BYTES: Final = 65_536


class LiveOutput:
    """The streams of one session on one terminal, whose size ``size_of`` tells."""

    def __init__(self, size_of: Callable[[], terminal_size]) -> None:
        self._size_of = size_of
        self._views: dict[str, TextView] = {}
        self._stream = ""
        # The lines at the end of the terminal that the stream can still change.
        self._shown = [""]

    def add(self, stream: str, data: bytes) -> str:
        """Return what to write to the terminal for the next bytes of a stream."""
        return self._feed(stream, data, is_final=False)

    def finish(self) -> str:
        """Return what to write for characters that came in part, now that nothing follows."""
        return "".join(self._feed(stream, b"", is_final=True) for stream in self._views)

    def _feed(self, stream: str, data: bytes, *, is_final: bool) -> str:
        view = self._views.setdefault(stream, TextView())
        before = view.text
        view.feed(data, final=is_final)
        text = view.text
        if text == before:
            return ""
        shown = self._turned_to(stream) + self._drawn(text.split("\n"))
        view.forget(_KEPT_CHARS)
        self._shown = view.text.split("\n")
        return shown

    def _turned_to(self, stream: str) -> str:
        """Return what leads from the end of another stream's text to a line of this one's.

        Lines above the other stream's text stay as they are; an unfinished one is shown again.
        """
        if stream == self._stream:
            return ""
        if self._stream:
            self._views[self._stream].forget(0)
        end = "\n" if self._shown[-1] else ""
        self._stream, self._shown = stream, [""]
        return end

    def _drawn(self, lines: list[str]) -> str:
        """Return what makes the lines of those that are shown."""
        *finished, unfinished = self._shown
        count = len(finished)
        goes_on = lines[count:]
        if goes_on and lines[:count] == finished and goes_on[0].startswith(unfinished):
            return "\n".join(goes_on)[len(unfinished) :]
        most = min(count, len(lines) - 1)
        first = next((at for at in range(most) if self._shown[at] != lines[at]), most)
        size = self._size_of()
        above = sum(_rows_of(line, size.columns) for line in self._shown[first:]) - 1
        changed = "\n".join(lines[first:])
        if above >= size.lines:
            # The terminal has moved those lines out of reach, so they are shown once more.
            return f"\n{changed}"
        up = f"\x1b[{above}A" if above else ""
        return f"\r{up}\x1b[J{changed}"


def show(text: str) -> None:
    """Write to the standard output, in what its encoding has."""
    sys.stdout.buffer.write(text.encode(sys.stdout.encoding, "replace"))
    sys.stdout.buffer.flush()


def show_output_of(command: Sequence[str]) -> int:
    """Run a command and show what it writes until its end; returns its exit code.

    Raises OSError.
    """
    live = LiveOutput(get_terminal_size)
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as running:
        while running.stdout is not None and (data := running.stdout.read(_READ_BYTES)):
            show(live.add("stdout", data))
    show(live.finish())
    return running.returncode


def _rows_of(line: str, columns: int) -> int:
    """The number of rows that a line takes on a terminal that has so many columns."""
    rows, column = 1, 0
    for char in line:
        if char == "\t":
            column = min(columns - 1, column // _TAB_COLUMNS * _TAB_COLUMNS + _TAB_COLUMNS)
            continue
        width = _width_of(char)
        if column + width > columns:
            rows, column = rows + 1, 0
        column += width
    return rows


def _width_of(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
