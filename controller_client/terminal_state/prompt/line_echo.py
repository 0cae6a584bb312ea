"""The memory of whether a line editor shows the input at a prompt.

Seen once, the answer holds for the same program with the same prompt.
"""

from typing import Final

from controller_client.terminal_state.prompt.output_modes import plain_text

_LOOKED_AT_BYTES: Final = 8192
"""The longest output to search: an editor may redraw its line at every key, so it is long."""


class LineEcho:
    """The memory of one prompt and of the echo there.

    In canonical mode the kernel shows the input, which says nothing about the program. The watcher
    passes no input on then.
    """

    def __init__(self) -> None:
        self._asked: tuple[int, str] | None = None
        self._typed = ""
        self._shown = b""
        self._echoed: tuple[int, str] | None = None

    def on_claim(self, pid: int, prompt: str) -> None:
        """Take a claim: process ``pid`` waits at ``prompt``."""
        self._asked = (pid, prompt.strip())
        self._typed, self._shown = "", b""

    def before_input(self, data: bytes) -> None:
        """Take input: a whole line at the claimed prompt counts, any other input does not."""
        text = data.decode("utf-8", "replace").rstrip("\r\n")
        is_line = data[-1:] in {b"\r", b"\n"} and text.isprintable() and text.strip()
        self._typed, self._shown = (text if is_line and self._asked is not None else ""), b""

    def on_output(self, data: bytes) -> None:
        """Search output for the echo, up to the end of the line; later output is no echo."""
        if not self._typed:
            return
        self._shown += data
        line, ended, _ = self._shown.partition(b"\n")
        if self._typed in plain_text(line):
            self._echoed = self._asked
        elif not ended and len(self._shown) < _LOOKED_AT_BYTES:
            return
        elif self._echoed == self._asked:
            self._echoed = None
        self._typed, self._shown = "", b""

    def is_echoed(self, pid: int, prompt: str) -> bool:
        """Return whether the last input at this prompt was shown."""
        return self._echoed == (pid, prompt.strip())
