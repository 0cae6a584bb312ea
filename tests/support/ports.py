"""TCP ports of the loopback for the servers of tests. Runs of tests may go on side by side, and no two are given the same port."""

import functools
import socket
from collections.abc import Iterator

# Below what kernels hand out to outgoing connections: none of those takes the port of a server that is down just now.
_RANGE = range(10_000, 32_000)
_BLOCK_SIZE = 100


def free_port() -> int:
    """One that nobody listens on, and that nobody else is given as long as this process lives."""
    return next(_ports())


@functools.cache
def _ports() -> Iterator[int]:
    return _ports_of_own_blocks()


def _ports_of_own_blocks() -> Iterator[int]:
    reservations = []
    for first in _RANGE[::_BLOCK_SIZE]:
        # A block belongs to the process that holds its first port.
        if (reservation := _bound(first)) is None:
            continue
        reservations.append(reservation)
        for port in range(first + 1, first + _BLOCK_SIZE):
            if (probe := _bound(port)) is not None:
                probe.close()
                yield port


def _bound(port: int) -> socket.socket | None:
    holder = socket.socket()
    try:
        holder.bind(("127.0.0.1", port))
    except OSError:
        holder.close()
        return None
    return holder
