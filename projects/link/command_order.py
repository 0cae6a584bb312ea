"""The order of the commands of one connection. Pure: no database, no clock, no socket.

Commands of one controller have numbers without holes. They are committed in the order of their
numbers, but handed over by several threads, so a later one may come first. It is held until all
before it are sent. A number that never comes was committed by another process, or its hand-over was
lost: then the outbox is asked for everything up to a number.
"""

from collections.abc import Iterable
from typing import Final

from projects.sessions.outbox import OutboxMessage

MAX_HELD: Final = 64
"""At most this many commands are held. Further ones are dropped, and found in the outbox."""


class CommandOrder:
    """The commands that a connection was handed, in the order in which it may send them.

    ``sent_up_to``: no command up to this number is left to be sent. ``has_dropped``: a command was
    dropped since the outbox was asked last.
    """

    def __init__(self) -> None:
        self.sent_up_to = 0
        self.has_dropped = False
        self._held: dict[int, OutboxMessage] = {}

    @property
    def has_gap(self) -> bool:
        """True if a command is held that comes after one which was not handed over."""
        return bool(self._held) and self.sent_up_to + 1 not in self._held

    def hand_over(self, command: OutboxMessage) -> None:
        """Take a command. One that the outbox gave already is dropped: it was sent."""
        if command.seq <= self.sent_up_to:
            return
        if len(self._held) < MAX_HELD:
            self._held[command.seq] = command
        else:
            self.has_dropped = True

    def next(self) -> OutboxMessage | None:
        """The next command to send; None while the number after the last one is missing."""
        command = self._held.pop(self.sent_up_to + 1, None)
        if command is not None:
            self.sent_up_to = command.seq
        return command

    def took(self, seqs: Iterable[int], up_to: int) -> None:
        """Note that the outbox gave ``seqs``, and that it has nothing more up to ``up_to``."""
        self.sent_up_to = max([self.sent_up_to, up_to, *seqs])
        self._held = {seq: held for seq, held in self._held.items() if seq > self.sent_up_to}
        self.has_dropped = False
