"""TCP ports of the loopback for the servers of tests.

Runs of tests may go on side by side, and no two are given the same port.
"""

import functools
import socket
import threading
from collections.abc import Iterator

# Below the ports that kernels give to outgoing connections. Otherwise such a connection could take
# the port of a server that is down for a moment.
_RANGE = range(10_000, 32_000)
_BLOCK_SIZE = 100
# Fixtures start servers in several threads, and a generator runs in one thread at a time.
_ASKING = threading.Lock()


def free_port() -> int:
    """A port on which nobody listens; no other caller gets it while this process lives.

    Any thread may call this.
    """
    with _ASKING:
        return next(_ports())


@functools.cache
def _ports() -> Iterator[int]:
    return _ports_of_own_blocks()


def _ports_of_own_blocks() -> Iterator[int]:
    reservations = []
    for first in _RANGE[::_BLOCK_SIZE]:
        # A block of ports belongs to the process that has bound its first port.
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
