"""A program that writes numbered lines to a log at a steady rate, and a reader of such a log.

On SIGHUP the program opens the log again, as servers do. Run as a program with ``PATH`` and
``BYTES_PER_SECOND``, it writes until SIGTERM, then prints how many lines it wrote.
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

from tests.support.mcp.client import ToolRefusedError
from tests.support.stack import Stack
from tests.support.waiting import wait_until

_ROOT = Path(__file__).resolve().parents[3]
_TICK_SECONDS = 0.02
_FILL = "é" * 40


def line(number: int) -> bytes:
    """One line of the log; the same number always gives the same line."""
    return f"{number:09d} {_FILL}\n".encode()


def lines(count: int) -> bytes:
    """The first ``count`` lines of the log."""
    return b"".join(map(line, range(count)))


class Writer:
    """The running program that writes the log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid

    def stop(self) -> int:
        """End the program, and return how many lines it wrote."""
        self._process.terminate()
        return int(self._process.communicate(timeout=90)[0])


@contextmanager
def writing(path: Path, bytes_per_second: int) -> Iterator[Writer]:
    """A running writer that is killed after the block."""
    command = [
        sys.executable,
        "-m",
        "tests.support.hosts.log_writer",
        str(path),
        str(bytes_per_second),
    ]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: path.exists() and path.stat().st_size > 0, 90, "the writer to begin")
            yield Writer(process)
        finally:
            process.kill()


async def follow(
    stack: Stack, session_id: str, is_written: Callable[[], bool]
) -> tuple[bytes, list[dict[str, object]]]:
    """Read a monitor until nothing more comes after ``is_written`` is true.

    Returns the content, and the answers that have a reset or a gap or that refuse for good. A call
    that fails is repeated with its request id over a new connection.
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
                        answer = await caller.call(
                            "get_session_updates",
                            session_id=session_id,
                            wait_seconds=1,
                            request_id=request_id,
                        )
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
        # Two writes, so that a reader may find half of a character at the end of the file.
        for piece in (batch[: len(batch) // 2 + 1], batch[len(batch) // 2 + 1 :]):
            os.write(descriptor, piece)
        written = max(written, due)
        signal.sigtimedwait([], _TICK_SECONDS)
    sys.stdout.write(f"{written}\n")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
