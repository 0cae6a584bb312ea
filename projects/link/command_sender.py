"""The sender of one connection: it sends commands in the order of their numbers.

Commands that this process commits are handed over to it. Commands of other processes, and those of
before this connection, it takes out of the outbox when its doorbell rings.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from controller_client.protocol.messages import Message
from projects.errors.server import StorageUnavailable
from projects.link.command_order import CommandOrder
from projects.link.inbound import leases
from projects.link.inbound.connection_memory import ConnectionMemory
from projects.link.inbound.leases import Lease
from projects.sessions.outbox import OutboxMessage
from projects.storage.access import in_database
from projects.storage.threads import LoopCalls, calls_into_this_loop
from projects.wakeups import doorbells, serving
from projects.wakeups.doorbells import Doorbell
from projects.wakeups.serving import Served

logger = logging.getLogger(__name__)

GAP_SECONDS: Final = 0.02
"""A command that is missing is awaited this long, before the outbox is asked for it."""


class CommandSender:
    """The sender of the connection that holds ``lease``. ``send`` puts a message on its socket."""

    def __init__(
        self,
        lease: Lease,
        *,
        memory: ConnectionMemory,
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self._lease = lease
        self._memory = memory
        self._send = send
        self._order = CommandOrder()
        self._calls: LoopCalls = calls_into_this_loop()
        self._bell: Doorbell = doorbells.controller_doorbell(lease.controller_id)

    async def send_commands(self) -> None:
        """Send commands for as long as the connection lives.

        Raises Fenced or Revoked if the doorbell rings because of a newer connection of the same
        controller, or because its credential was revoked.
        """
        controller_id, epoch, _ = self._lease
        async with self._bell:
            with serving.serving(Served(controller_id, epoch), self):
                await self._look(is_rung=False)
                while True:
                    is_rung = await self._bell.rung()
                    await self._send_handed_over()
                    if is_rung:
                        await self._look(is_rung=True)

    # ---- handed over -----------------------------------------------------------------------------

    @property
    def sent_up_to(self) -> int:
        """The number up to which no command is left to be sent."""
        return self._order.sent_up_to

    def takes(self, command: Message) -> bool:
        """True if the connection sends ``command`` when it is handed over. Any thread may ask.

        A number that was sent already is of a restored database, which the outbox has to show.
        """
        if not isinstance(command, OutboxMessage) or command.seq <= self.sent_up_to:
            return False
        return not self._memory.is_held_back(command)

    def hand_over(self, command: Message) -> None:
        """Take a command that is committed. Any thread may call this; it never waits."""
        self._calls.put(partial(self._arrive, command))

    def _arrive(self, command: Message) -> None:
        if isinstance(command, OutboxMessage):
            self._order.hand_over(command)
            self._bell.wake()

    async def _send_handed_over(self) -> None:
        while (command := self._order.next()) is not None:
            await self._send(command)
        if self._order.has_dropped:
            self._bell.set()
        elif self._order.has_gap:
            asyncio.get_running_loop().call_later(GAP_SECONDS, self._end_gap)

    def _end_gap(self) -> None:
        if self._order.has_gap:
            self._bell.set()

    # ---- taken out of the outbox -----------------------------------------------------------------

    async def _look(self, *, is_rung: bool) -> None:
        try:
            if not await self._send_waiting() and is_rung:
                await in_database(leases.check_standing, self._lease)
        except StorageUnavailable:
            # The reconciler rings again.
            logger.error("commands for controller %s cannot be read now", self._lease.controller_id)

    async def _send_waiting(self) -> int:
        """Send all commands that are in the outbox. Return how many there were."""
        controller_id, epoch, _ = self._lease
        taken = 0
        while True:
            found = await in_database(
                self._memory.take_commands, controller_id, epoch, self.sent_up_to
            )
            numbers = [each.seq for each in found.messages if isinstance(each, OutboxMessage)]
            self._order.took(numbers, found.up_to)
            for message in found.messages:
                await self._send(message)
            for session_id in found.settled:
                await doorbells.ring_session(session_id)
            await self._send_handed_over()
            taken += len(found.messages) + len(found.settled)
            if found.is_all:
                return taken
