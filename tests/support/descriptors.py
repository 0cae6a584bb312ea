"""Processes that can open few more descriptors, or none."""

import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tests.support.processes import open_descriptors

_LOOKS, _LOOK_SECONDS = 10, 0.05


@contextmanager
def spare_descriptors(count: int) -> Iterator[None]:
    """This process can open only ``count`` more descriptors in the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A new descriptor is the lowest number that is free.
    free = [number for number in range(1000) if not _is_open(number)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[count], limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextmanager
def without_descriptors(pid: int) -> Iterator[None]:
    """The process ``pid`` can open no descriptor in the block; it may end meanwhile."""
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    for _ in range(_LOOKS):
        # A descriptor that was open only for a moment has left room since the last look.
        lowest_free = min(set(range(1000)) - set(open_descriptors(pid)))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, limits[1]))
        threading.Event().wait(_LOOK_SECONDS)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
