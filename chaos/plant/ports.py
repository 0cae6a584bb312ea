"""Ports of the loopback for one run. Runs may go on side by side."""

import socket
from collections.abc import Iterator
from typing import Final

# Below the ports that kernels give to outgoing connections. Otherwise such a connection could take
# the port of a server that is down for a moment.
_RANGE: Final = range(10_000, 32_000)
_BLOCK_SIZE: Final = 100


class Ports:
    """Hands out ports on which nobody listens, each once."""

    def __init__(self) -> None:
        self._reservations: list[socket.socket] = []
        self._free = self._ports()

    def next(self) -> int:
        """A port that nobody else is given."""
        return next(self._free)

    def close(self) -> None:
        """Give all ports back to the machine."""
        for reservation in self._reservations:
            reservation.close()

    def _ports(self) -> Iterator[int]:
        for first in _RANGE[::_BLOCK_SIZE]:
            # A block belongs to the process that has bound its first port.
            reservation = _bound(first)
            if reservation is None:
                continue
            self._reservations.append(reservation)
            for port in range(first + 1, first + _BLOCK_SIZE):
                probe = _bound(port)
                if probe is not None:
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


def accepts(port: int) -> bool:
    """True if somebody listens on this port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
