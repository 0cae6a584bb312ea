"""One at a time: what changes the machine as a whole, when several runs of the tests go on side by side."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone_with(directory: Path) -> Iterator[None]:
    """Nobody else is in this block with the same directory, which exists; waits until that is so."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
