"""Lines of a run on a terminal, in colours where it has them, or as JSON for programs."""

import json
import os
from collections.abc import Mapping
from typing import Any, Final, TextIO

from agent.rendering import Kind, Line

_COLOURS: Final[dict[Kind, str]] = {
    "note": "2",
    "text": "",
    "call": "1;36",
    "output": "2",
    "state": "32",
    "error": "31",
    "approval": "1;33",
    "end": "1",
}
_MARKS: Final[dict[Kind, str]] = {
    "note": "* ",
    "text": "",
    "call": "> ",
    "output": "  | ",
    "state": "  -> ",
    "error": "  ! ",
    "approval": "? ",
    "end": "= ",
}


class Console:
    """One stream. ``write`` puts a line there, or a piece of text behind the last one."""

    def __init__(self, stream: TextIO, *, is_coloured: bool | None = None) -> None:
        self._stream = stream
        self._is_coloured = (stream.isatty() and not os.environ.get("NO_COLOR")) if is_coloured is None else is_coloured
        self._is_open = False

    def write(self, line: Line, *, goes_on: bool = False) -> None:
        """Text stays open for more of it."""
        if self._is_open and not goes_on:
            self._stream.write("\n")
        text = line.text if goes_on else _MARKS[line.kind] + line.text
        colour = _COLOURS[line.kind]
        self._stream.write(f"\x1b[{colour}m{text}\x1b[0m" if self._is_coloured and colour else text)
        self._is_open = line.kind == "text" and not line.text.endswith("\n")
        if line.kind != "text":
            self._stream.write("\n")
        self._stream.flush()

    def close(self) -> None:
        """Ends an open line."""
        if self._is_open:
            self._stream.write("\n")
            self._is_open = False


class JsonLines:
    """One stream of objects, each on a line: ``{kind, text}``, and ``goes_on`` for a piece of text behind the last one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, line: Line, *, goes_on: bool = False) -> None:
        """A line of the run."""
        self.write_data({"kind": line.kind, "text": line.text} | ({"goes_on": True} if goes_on else {}))

    def write_data(self, data: Mapping[str, Any]) -> None:
        """Any object."""
        self._stream.write(json.dumps(data, default=str) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Nothing is open."""
