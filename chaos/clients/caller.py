"""A caller that writes down each call, and repeats those of which nothing is known."""

import asyncio
import random
import time
import uuid
from typing import Final

from chaos.history import History
from chaos.wire import Endpoint, Json, Reply

_PATIENCE_SECONDS: Final = 240.0
_PAUSE_SECONDS: Final = 0.5
# The longest that a caller waits for an answer beyond the wait that it asked for.
_BEYOND_SECONDS: Final = 45.0


class GaveUpError(Exception):
    """A call was not answered, however often it was repeated."""


class Caller:
    """Calls tools for one conversation; ``name`` says in the history whose calls these are."""

    def __init__(
        self, endpoint: Endpoint, history: History, name: str, dice: random.Random
    ) -> None:
        self.name = name
        self.history = history
        self._endpoint = endpoint
        self._dice = dice

    async def insist(self, tool: str, *, wait: float = 0.0, **arguments: object) -> Reply:
        """Call a tool until it is answered: a result, or a refusal that will not change.

        The call is repeated unchanged. Raises GaveUpError.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            reply = await self.once(tool, wait=wait, **arguments)
            if not reply.is_worth_repeating:
                return reply
            if time.monotonic() > deadline:
                self.history.note("gave_up", session=self.name, tool=tool, body=reply.body)
                raise GaveUpError(tool)
            await asyncio.sleep(_PAUSE_SECONDS * (1 + self._dice.random()))

    async def once(self, tool: str, *, wait: float = 0.0, **arguments: object) -> Reply:
        """Make one call, and write down what became of it."""
        is_modern = self._dice.random() < 0.7
        sent: Json = dict(arguments)
        invoked = time.monotonic()
        reply = await self._endpoint.call(tool, sent, wait + _BEYOND_SECONDS, is_modern=is_modern)
        self.history.note(
            "call",
            session=self.name,
            tool=tool,
            arguments=arguments,
            wait=wait,
            invoked=round(invoked, 6),
            outcome=reply.outcome,
            body=reply.body,
        )
        return reply

    def new_id(self) -> str:
        """A fresh id for an action, which the same seed makes again."""
        return str(uuid.UUID(int=self._dice.getrandbits(128), version=4))
