"""The server and the daemon that a killed quickstart left behind.

A quickstart that is stopped ends its two child processes. When it is killed, Linux sends them
SIGTERM and they need some seconds to end; on macOS they stay. They hold the port and the daemon's
state, so the next start waits for them, or ends them. Sessions are not children of the quickstart
and are left alone.

``children.json`` in the data directory records the process ids and command lines.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from typing import Final

_FILE: Final = "children.json"
_TERM_SECONDS: Final = 15.0
_KILL_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 0.05


def record(data_dir: Path, children: Mapping[int, Sequence[str]]) -> None:
    """Replace the record by the running ``children``: process id and command line of each."""
    fresh = data_dir / f"{_FILE}.new"
    fresh.write_text(json.dumps({str(pid): list(command) for pid, command in children.items()}))
    fresh.replace(data_dir / _FILE)


def running(data_dir: Path) -> list[int]:
    """The process ids of recorded children that still run."""
    try:
        recorded: dict[str, list[str]] = json.loads((data_dir / _FILE).read_text())
    except (OSError, ValueError):
        return []
    return [int(pid) for pid, command in recorded.items() if _is_child(int(pid), command)]


def end(data_dir: Path) -> bool:
    """End the recorded children that still run; False if one of them cannot be ended."""
    for number, seconds in ((signal.SIGTERM, _TERM_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        for pid in running(data_dir):
            with suppress(OSError):
                os.kill(pid, number)
        if wait_until(lambda: not running(data_dir), seconds):
            return True
    return False


def _is_child(pid: int, command: Sequence[str]) -> bool:
    # Process ids are reused, so two more things must match: a child leads a session of its own, and
    # its arguments are the recorded ones. macOS replaces the path of an interpreter, so the first
    # word is not compared.
    try:
        return os.getsid(pid) == pid and _arguments_of(pid)[1:] == [*command[1:]]
    except OSError:
        return False


def _arguments_of(pid: int) -> list[str]:
    """The command line of a process; empty if it is gone."""
    if sys.platform == "linux":
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    found = subprocess.run(
        ["ps", "-o", "command=", "-ww", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return found.stdout.strip().split(" ")


def wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Poll ``is_so`` for at most ``seconds``; True as soon as it holds."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        select([], [], [], _LOOK_AGAIN_SECONDS)
    return True
