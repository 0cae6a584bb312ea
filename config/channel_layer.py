"""The channel layer of a server without Redis: Channels' own, without the costs that grow with everything that is going on.

Channels walks all channels and all groups for expired messages at every send and every receive, and makes a task for each member
of a group. Two doorbells per turn among a hundred waiting callers made that a tenth of the server's time.
"""

import time
from contextlib import suppress
from typing import Any, Final

from channels.exceptions import ChannelFull
from channels.layers import InMemoryChannelLayer

CLEANING_SECONDS: Final = 1.0


class LocalChannelLayer(InMemoryChannelLayer):  # type: ignore[misc] # channels is untyped
    """In memory, within one process and one event loop."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._clean_at = 0.0

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """To every member now; one whose queue is full has enough to wake up for."""
        self.require_valid_group_name(group)
        self._clean_expired()
        for channel in tuple(self.groups.get(group, ())):
            with suppress(ChannelFull):
                await self.send(channel, message)

    def _clean_expired(self) -> None:
        now = time.monotonic()
        if now >= self._clean_at:
            self._clean_at = now + CLEANING_SECONDS
            super()._clean_expired()
