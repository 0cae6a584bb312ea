"""The far side of a relay (sudo, script, expect): has it passed on everything its inner terminal printed?

Output of an inner program travels through the kernel to the inner master before its relay even wakes, so the relay being
asleep proves nothing by itself. Its master is borrowed for the moment of one poll, which first delivers what is under way.
"""

import os
import select
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

PIDFD_GETFD: Final = 438
"""The number on every architecture; Python has no wrapper for it."""


class InnerMaster(NamedTuple):
    """A master a relay listens to: the relay, its descriptor, the number of the terminal."""

    pid: int
    fd: int
    number: int

    @property
    def device(self) -> int:
        """The inner terminal's device number."""
        return os.makedev(136 + (self.number >> 8), self.number & 0xFF)


def has_output_under_way(master: InnerMaster) -> bool | None:
    """Whether the relay still has something to read there; None when that cannot be known."""
    borrowed = _borrow(master.pid, master.fd)
    if borrowed is None:
        return None
    try:
        poller = select.poll()
        poller.register(borrowed, select.POLLIN | select.POLLPRI)
        return bool(poller.poll(0))
    finally:
        os.close(borrowed)


def _borrow(pid: int, fd: int) -> int | None:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        borrowed = _syscall()(PIDFD_GETFD, pidfd, fd, 0)
    except (ImportError, OSError):
        return None
    finally:
        os.close(pidfd)
    return borrowed if borrowed >= 0 else None


@cache
def _syscall() -> "Callable[[int, int, int, int], int]":
    # Imported only where a relay is met: it would double what the package costs every other session.
    import ctypes

    function = ctypes.CDLL(None).syscall
    function.restype = ctypes.c_long
    function.argtypes = [ctypes.c_long] * 4

    def call(number: int, first: int, second: int, third: int) -> int:
        return int(function(number, first, second, third))

    return call
