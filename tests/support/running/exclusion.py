"""Locks for tests that change the whole machine, because several runs go on side by side."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone_with(directory: Path) -> Iterator[None]:
    """Wait until no other process is in such a block with the same directory.

    The directory must exist.
    """
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
