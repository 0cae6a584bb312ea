"""The terminal emulator of the pages, run by Node in a process of its own.

What it reads is what programs printed, so the process gets nothing but that: no environment, no
files beside its own, bounded memory, and no processor time that anybody else wants.
"""

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from django.contrib.staticfiles import finders

from console.parts.browser_files import VENDOR

_SCRIPT: Final = "console/screens/emulator.mjs"
_MEMORY_MIB: Final = 256
_LOWEST: Final = 19


@cache
def emulator_command() -> tuple[str, ...] | None:
    """Returns the command that runs the emulator; None where it cannot run."""
    beside = str(Path(sys.executable).parent)
    node = shutil.which("node", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    script = finders.find(_SCRIPT)
    if node is None or script is None or finders.find(f"{VENDOR}xterm-headless.mjs") is None:
        return None
    return *after_others(_LOWEST), node, f"--max-old-space-size={_MEMORY_MIB}", str(script)


def after_others(niceness: int) -> list[str]:
    """The beginning of a command whose process comes after others; empty if it cannot be had."""
    nice = shutil.which("nice")
    return [] if nice is None else [nice, "-n", str(niceness)]


class Emulator:
    """A terminal that is fed lines of JSON. It begins with its size, or with an earlier state."""

    def __init__(self, *, rows: int, cols: int, is_pipes: bool, state: bytes | None) -> None:
        command = emulator_command()
        if command is None:
            raise RuntimeError("there is no terminal emulator here")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={},
            cwd="/",
        )
        earlier = None if state is None else json.loads(state)
        begin = {"rows": rows, "cols": cols, "convertEol": is_pipes, "state": earlier}
        self._send(json.dumps(begin))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def fed(self, line: str) -> bytes:
        """Feed a part; returns the state after it as JSON, or ``null``. Raises OSError."""
        self._send(line)
        answer = self._process.stdout.readline() if self._process.stdout is not None else b""
        if not answer:
            raise OSError("the terminal emulator ended")
        return answer.strip()

    def _send(self, line: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
