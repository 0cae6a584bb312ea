"""The processes the quickstart starts: each in a session of its own, its output in a log, all of them ended in the end."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from quickstart.errors import StepFailed
from quickstart.options import ROOT

_TAIL_BYTES = 2000
_PR_SET_PDEATHSIG = 1


class Child:
    """One running process. ``name`` is for people."""

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name, self.log, self._process = name, log, process

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it is gone."""
        return self._process.returncode is not None

    async def wait(self) -> int:
        """Its exit status, once it ended."""
        return await self._process.wait()

    def failure(self) -> StepFailed:
        """What to tell when it ended on its own."""
        return StepFailed(self.name, self.log, log_tail(self.log))

    async def stop(self, seconds: float) -> None:
        """TERM, and KILL after ``seconds``."""
        if not self.has_ended:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), seconds)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()


async def start(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> Child:
    """Start it with its output appended to ``log`` (0600)."""
    return Child(name, await _spawn(command, environment, log, has_answer=False), log)


async def run(name: str, command: Sequence[str], environment: Mapping[str, str], log: Path) -> bytes:
    """Run it to its end: what it wrote to stdout. Raises StepFailed if it did not succeed; never leaves it behind."""
    process = await _spawn(command, environment, log, has_answer=True)
    child = Child(name, process, log)
    try:
        answer, _ = await process.communicate()
    finally:
        await child.stop(2.0)
    if process.returncode:
        raise child.failure()
    return answer


async def _spawn(command: Sequence[str], environment: Mapping[str, str], log: Path, *, has_answer: bool) -> asyncio.subprocess.Process:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if has_answer else descriptor,
            stderr=descriptor,
            env=dict(environment),
            cwd=ROOT,
            # Ctrl-C reaches the whole foreground group of the terminal; these are stopped in order instead.
            start_new_session=True,
            preexec_fn=_ended_with_parent(),
        )
    finally:
        os.close(descriptor)


def log_tail(log: Path) -> str:
    """The last lines of a log, indented."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-15:])


def _ended_with_parent() -> Callable[[], None] | None:
    """Linux: even a quickstart that is killed with -9 leaves no server behind."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return arrange
