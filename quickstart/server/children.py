"""Child processes of the quickstart, each in a session of its own, with its output in a log."""

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quickstart.errors import StepFailed
from quickstart.options import ROOT

_TAIL_BYTES = 2000
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Child:
    """A child process; ``name`` is what messages call it."""

    name: str
    process: asyncio.subprocess.Process
    log: Path

    @property
    def end(self) -> str:
        """The end of the process in words; a log does not mention a signal."""
        status = self.process.returncode
        if status is None or status >= 0:
            return f"ended with code {status}"
        try:
            return f"was ended by {signal.Signals(-status).name}"
        except ValueError:
            return f"was ended by signal {-status}"

    def failure(self) -> StepFailed:
        """The error to raise if the process ended on its own."""
        return StepFailed(self.name, self.log, log_tail(self.log))

    async def stop(self, seconds: float) -> None:
        """End the process with SIGTERM, and with SIGKILL after ``seconds``."""
        if self.process.returncode is None:
            self.process.terminate()
            try:
                await asyncio.wait_for(self.process.wait(), seconds)
            except TimeoutError:
                self.process.kill()
                await self.process.wait()


async def start(
    name: str, command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Child:
    """Start a child process with its output appended to ``log`` (0600)."""
    return Child(name, await _spawn(command, environment, log, has_answer=False), log)


async def run(
    name: str, command: Sequence[str], environment: Mapping[str, str], log: Path
) -> bytes:
    """Run a child process to its end; returns its standard output.

    Raises StepFailed if its exit status is not 0. Ends the process if the caller is cancelled.
    """
    process = await _spawn(command, environment, log, has_answer=True)
    child = Child(name, process, log)
    try:
        answer, _ = await process.communicate()
    finally:
        await child.stop(2.0)
    if process.returncode:
        raise child.failure()
    return answer


async def _spawn(
    command: Sequence[str], environment: Mapping[str, str], log: Path, *, has_answer: bool
) -> asyncio.subprocess.Process:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if has_answer else descriptor,
            stderr=descriptor,
            env=dict(environment),
            cwd=ROOT,
            # Ctrl-C signals the terminal's whole foreground group. Child processes must not get it:
            # they are stopped in order.
            start_new_session=True,
            preexec_fn=_ended_with_parent(),
        )
    finally:
        os.close(descriptor)


def log_tail(log: Path) -> str:
    """The last 15 lines of a log, indented; empty if it cannot be read."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-15:])


def _ended_with_parent() -> Callable[[], None] | None:
    # On Linux, even a quickstart that is killed with SIGKILL leaves no server behind.
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    return arrange
