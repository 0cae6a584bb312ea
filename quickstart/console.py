"""What the person at the terminal sees. On a terminal a progress line rewrites itself; elsewhere it is printed now and then."""

import shutil
import sys
import time
from contextlib import suppress
from typing import TextIO

_QUIET_SECONDS = 5.0


class Console:
    """Steps, progress within a step, and plain lines."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._rewrites = self._stream.isatty()
        self._has_open_line = False
        self._printed_at = 0.0

    def line(self, text: str = "") -> None:
        """Print one line."""
        self._close_line()
        self._write(text + "\n")

    def step(self, text: str) -> None:
        """Announce a step."""
        self.line(f"==> {text}")
        self._printed_at = time.monotonic()

    def progress(self, text: str) -> None:
        """Say how far the present step is; where lines cannot be rewritten, at most every few seconds."""
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
        """A terminal that is gone must not keep us from ending what we started."""
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()
