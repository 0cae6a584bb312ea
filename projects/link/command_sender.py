"""The sender of one connection: it sends the commands in the outbox when its doorbell rings."""

import logging
from collections.abc import Awaitable, Callable

from controller_client.protocol.messages import Message
from projects.errors.server import StorageUnavailable
from projects.link.inbound import commands, leases
from projects.link.inbound.connection_memory import ConnectionMemory
from projects.link.inbound.leases import Lease
from projects.storage.access import in_database
from projects.wakeups import doorbells, reconciler

logger = logging.getLogger(__name__)


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

    async def send_commands(self) -> None:
        """Send commands for as long as the connection lives.

        Raises Fenced or Revoked if the doorbell rings because of a newer connection of the same
        controller, or because its credential was revoked.
        """
        controller_id, epoch, _ = self._lease
        async with doorbells.controller_doorbell(controller_id) as bell:
            with reconciler.serving(controller_id, epoch):
                is_rung = False
                while True:
                    try:
                        if not await self._send_waiting() and is_rung:
                            await in_database(leases.check_standing, self._lease)
                    except StorageUnavailable:
                        # The reconciler rings again.
                        logger.error("commands for controller %s cannot be read now", controller_id)
                    await bell.rung()
                    is_rung = True

    async def _send_waiting(self) -> int:
        """Send all commands that are in the outbox. Return how many there were."""
        taken = 0
        while True:
            messages, ended = await in_database(
                self._memory.take_commands, self._lease.controller_id, self._lease.epoch
            )
            self._memory.sent(messages)
            for message in messages:
                await self._send(message)
            for session_id in ended:
                await doorbells.ring_session(session_id)
            taken += len(messages) + len(ended)
            if len(messages) + len(ended) < commands.COMMANDS_PER_TAKE:
                return taken
