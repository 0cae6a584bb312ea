"""A program whose output is known beforehand: numbered lines with the digest of the lines before.

Run it by its path with any Python: ``oracle.py LINES INTERVAL_SECONDS SPAWN_LOG``. It appends its
process id to SPAWN_LOG at once, so that a second start is noticed. ``expected_output`` gives the
bytes that a terminal shows for it.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path


def lines(count: int) -> Iterator[str]:
    """The printed lines without line ends.

    The last line carries the digest of all lines before it.
    """
    digest = hashlib.sha256()
    for number in range(count):
        line = f"line {number:07d} {digest.hexdigest()[:16]}"
        digest.update(line.encode())
        yield line
    yield f"total {digest.hexdigest()}"


def expected_output(count: int) -> bytes:
    """The output as a terminal with its usual output processing shows it."""
    return "".join(f"{line}\r\n" for line in lines(count)).encode()


def times_started(spawn_log: Path) -> int:
    """The number of times the program was started with this SPAWN_LOG."""
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
