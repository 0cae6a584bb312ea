"""The output of the quickstart.

On a terminal, a progress line is rewritten in place; elsewhere it is printed every few seconds.
"""

import shutil
import sys
import time
from contextlib import suppress
from typing import TextIO

from quickstart.errors import QuickstartError

_QUIET_SECONDS = 5.0


class Console:
    """Prints steps, progress within a step, plain lines and errors."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._rewrites = self._stream.isatty()
        self._has_open_line = False
        self._printed_at = 0.0

    def line(self, text: str = "") -> None:
        """Print one line of text."""
        self._close_line()
        self._write(text + "\n")

    def error(self, error: QuickstartError) -> None:
        """Print an error and its hint."""
        self.line(f"error: {error}")
        if error.hint:
            self.line(f"       {error.hint}")

    def step(self, text: str) -> None:
        """Announce the next step of the work."""
        self.line(f"==> {text}")
        self._printed_at = time.monotonic()

    def progress(self, text: str) -> None:
        """Show the progress of the step; without a terminal, at most every few seconds."""
        if self._rewrites:
            width = shutil.get_terminal_size().columns - 1
            self._write("\r\x1b[K" + f"    {text}"[:width])
            self._has_open_line = True
        elif time.monotonic() - self._printed_at >= _QUIET_SECONDS:
            self._printed_at = time.monotonic()
            self._write(f"    {text}\n")

    def _close_line(self) -> None:
        if self._has_open_line:
            self._write("\r\x1b[K")
            self._has_open_line = False

    def _write(self, text: str) -> None:
        # If the terminal is gone, the quickstart must still end what it started.
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
