"""The connections of hosts in this process, to which a committed command is handed over at once.

A command that is handed over needs no doorbell and no look at the outbox. Its row says from the
start that the connection of this epoch has it. The row is what counts: a hand-over that is lost
costs only time, because the connection looks for every number that it was not handed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from controller_client.protocol.messages import Message


class Connection(Protocol):
    """The connection of a host, as a transaction sees it that commits a command for the host."""

    @property
    def sent_up_to(self) -> int:
        """The number up to which no command is left for this connection to send."""

    def takes(self, command: Message) -> bool:
        """True if the connection sends ``command`` when it is handed over. Any thread may ask."""

    def hand_over(self, command: Message) -> None:
        """Take a command that is committed. Any thread may call this; it never waits."""


class Served(NamedTuple):
    """A controller and the epoch under which a connection in this process serves it."""

    controller_id: UUID
    epoch: int


_connections: Final[dict[UUID, dict[int, Connection]]] = {}


@contextmanager
def serving(served: Served, connection: Connection) -> Iterator[None]:
    """Inside this context ``connection`` is found as the one that serves the controller."""
    # Threads read these tables, so they are replaced and not changed.
    others = _connections.get(served.controller_id, {})
    _connections[served.controller_id] = {**others, served.epoch: connection}
    try:
        yield
    finally:
        left = dict(_connections[served.controller_id])
        del left[served.epoch]
        if left:
            _connections[served.controller_id] = left
        else:
            del _connections[served.controller_id]


def newest(controller_id: UUID) -> tuple[int, Connection] | None:
    """The newest connection of the controller in this process, and its epoch; None without one."""
    here = _connections.get(controller_id)
    return max(here.items(), key=lambda item: item[0]) if here else None


def all_served() -> list[tuple[Served, int]]:
    """Every connection of this process, with the number up to which it has sent all commands."""
    return [
        (Served(controller_id, epoch), connection.sent_up_to)
        for controller_id, here in _connections.items()
        for epoch, connection in here.items()
    ]
