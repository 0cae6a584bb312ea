"""Prints the lines of a run on a terminal, in colours if it has them, or as JSON for programs."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final, TextIO

from agent.views.rendering import Kind, Line

# Kind of line -> the mark before it, and the colour as a parameter of SGR.
_LOOKS: Final[dict[Kind, tuple[str, str]]] = {
    "note": ("* ", "2"),
    "text": ("", ""),
    "call": ("> ", "1;36"),
    "output": ("  | ", "2"),
    "state": ("  -> ", "32"),
    "error": ("  ! ", "31"),
    "approval": ("? ", "1;33"),
    "end": ("= ", "1"),
}


class Console:
    """Lines on one stream. A piece of text can continue the text before it."""

    def __init__(self, stream: TextIO, *, is_coloured: bool | None = None) -> None:
        self._stream = stream
        self._is_coloured = (
            (stream.isatty() and not os.environ.get("NO_COLOR"))
            if is_coloured is None
            else is_coloured
        )
        self._is_open = False

    def write(self, line: Line, *, goes_on: bool = False) -> None:
        """Writes a line, or with ``goes_on`` a piece behind the text of the last one."""
        if self._is_open and not goes_on:
            self._stream.write("\n")
        mark, colour = _LOOKS[line.kind]
        text = line.text if goes_on else mark + line.text
        self._stream.write(f"\x1b[{colour}m{text}\x1b[0m" if self._is_coloured and colour else text)
        self._is_open = line.kind == "text" and not line.text.endswith("\n")
        if line.kind != "text":
            self._stream.write("\n")
        self._stream.flush()

    def close(self) -> None:
        """Ends the line of an open text."""
        if self._is_open:
            self._stream.write("\n")
            self._is_open = False


class JsonLines:
    """JSON objects on one stream, each on a line: ``{kind, text}``.

    ``goes_on`` marks a piece of text that continues the one before it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: Line, *, goes_on: bool = False) -> None:
        """Writes a line of the run as an object."""
        self.write_data(
            {"kind": line.kind, "text": line.text} | ({"goes_on": True} if goes_on else {})
        )

    def write_data(self, data: Mapping[str, Any]) -> None:
        """Writes any object on a line."""
        self._stream.write(json.dumps(data, default=str) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Does nothing: no line stays open."""
