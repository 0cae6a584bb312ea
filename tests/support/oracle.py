"""A program whose output is known in advance: numbered lines, each with the digest of all lines before it.

Run by path with any Python: ``oracle.py LINES INTERVAL_SECONDS SPAWN_LOG``. It appends its pid to SPAWN_LOG at once, so that a second
start shows. ``expected_output`` gives the bytes a terminal shows for it.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def lines(count: int) -> Iterator[str]:
    """What the program prints, without line ends; the last line carries the digest of all of them."""
    digest = hashlib.sha256()
    for number in range(count):
        line = f"line {number:07d} {digest.hexdigest()[:16]}"
        digest.update(line.encode())
        yield line
    yield f"total {digest.hexdigest()}"


def expected_output(count: int) -> bytes:
    """As a terminal with its usual output processing shows it."""
    return "".join(f"{line}\r\n" for line in lines(count)).encode()


def times_started(spawn_log: Path) -> int:
    """How often the program was started with this SPAWN_LOG."""
    return len(spawn_log.read_text().splitlines())


def _main(count: int, interval_seconds: float, spawn_log: Path) -> None:
    with spawn_log.open("a") as log:
        log.write(f"{os.getpid()}\n")
    due = time.monotonic()
    for line in lines(count):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        due += interval_seconds
        time.sleep(max(0.0, due - time.monotonic()))  # noqa: TID251 - the program under observation, not a test


if __name__ == "__main__":
    _main(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3]))
