"""A program that writes numbered lines to a log at a steady rate and opens it again on SIGHUP, as servers do; and who follows such a log.

``python -m tests.support.log_writer PATH BYTES_PER_SECOND`` writes until SIGTERM, then prints how many lines it wrote.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.mcp_client import ToolRefusedError
from tests.support.stack import Stack
from tests.support.waiting import wait_until

_ROOT = Path(__file__).resolve().parents[2]
_TICK_SECONDS = 0.02
_FILL = "é" * 40


def line(number: int) -> bytes:
    """One line; the same number gives the same line."""
    return f"{number:09d} {_FILL}\n".encode()


def lines(count: int) -> bytes:
    """The first lines."""
    return b"".join(map(line, range(count)))


class Writer:
    """The running program; ``stop`` tells how many lines it wrote."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def stop(self) -> int:
        """Ends it in good order."""
        self._process.terminate()
        return int(self._process.communicate(timeout=20)[0])


@contextmanager
def writing(path: Path, bytes_per_second: int) -> Iterator[Writer]:
    """A writer that is gone after the block."""
    command = [sys.executable, "-m", "tests.support.log_writer", str(path), str(bytes_per_second)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: path.exists() and path.stat().st_size > 0, 20, "the writer to begin")
            yield Writer(process)
        finally:
            process.kill()


async def follow(stack: Stack, session_id: str, is_written: Callable[[], bool]) -> tuple[bytes, list[dict[str, object]]]:
    """Everything a monitor gives until nothing more comes once ``is_written``; and the answers that were more than content.

    A call that fails is made again with its request id, over a new connection.
    """
    content: list[str] = []
    events: list[dict[str, object]] = []
    request_id = str(uuid.uuid4())
    while True:
        with suppress(Exception):
            async with asyncio.timeout(60), stack.caller() as caller:
                while True:
                    was_written = is_written()
                    try:
                        answer = await caller.call("get_session_updates", session_id=session_id, wait_seconds=1, request_id=request_id)
                    except ToolRefusedError as refused:
                        if not refused.body["retryable"]:
                            return "".join(content).encode(), [*events, refused.body]
                        await asyncio.sleep(0.05)
                        continue
                    request_id = str(uuid.uuid4())
                    content.append(answer["new_content"])
                    if answer["reset"] or answer["gap"]:
                        events.append(answer)
                    if was_written and not answer["new_content"] and not answer["has_more"]:
                        return "".join(content).encode(), events
        await asyncio.sleep(0.05)


def _main(path: str, bytes_per_second: int) -> None:
    is_over = is_to_reopen = False

    def on_signal(number: int, _frame: object) -> None:
        nonlocal is_over, is_to_reopen
        is_over = is_over or number == signal.SIGTERM
        is_to_reopen = is_to_reopen or number == signal.SIGHUP

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    written, begun = 0, time.monotonic()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    while not is_over:
        if is_to_reopen:
            is_to_reopen = False
            os.close(descriptor)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        due = int((time.monotonic() - begun) * bytes_per_second / len(line(0)))
        batch = b"".join(map(line, range(written, due)))
        # In the middle of a character, too.
        for piece in (batch[: len(batch) // 2 + 1], batch[len(batch) // 2 + 1 :]):
            os.write(descriptor, piece)
        written = max(written, due)
        signal.sigtimedwait([], _TICK_SECONDS)
    sys.stdout.write(f"{written}\n")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
