"""A caller that writes down each call, and repeats those of which nothing is known."""

import asyncio
import random
import time
import uuid
from typing import Final, NoReturn

from chaos.history import History
from chaos.wire import Endpoint, Json, Reply

_PATIENCE_SECONDS: Final = 240.0
_PAUSE_SECONDS: Final = 0.5
# The longest that a caller waits for an answer beyond the wait that it asked for.
_BEYOND_SECONDS: Final = 45.0
# How long a read is repeated that is refused. No fault lasts longer.
_REFUSED_READ_SECONDS: Final = 60.0
_IDS: Final = ("request_id", "requestId")


class GaveUpError(Exception):
    """A call was not answered, or a read was refused, however often it was repeated."""


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

        The call is repeated unchanged, or under a new ``request_id`` if the refusal wants one.
        Raises GaveUpError.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            reply = await self.once(tool, wait=wait, **arguments)
            if not (reply.is_worth_repeating or reply.wants_a_new_id):
                return reply
            if time.monotonic() > deadline:
                self._give_up("gave_up", tool, reply)
            if reply.wants_a_new_id:
                arguments |= {key: self.new_id() for key in _IDS if key in arguments}
            await self._pause()

    async def read(self, tool: str, *, wait: float = 0.0, **arguments: object) -> Reply:
        """Call a tool that only reads until it gives a result.

        A refusal says nothing about what was to be read, so it is repeated for a while, whatever
        it says. Raises GaveUpError.
        """
        deadline = float("inf")
        while True:
            reply = await self.insist(tool, wait=wait, **arguments)
            if reply.outcome == "ok":
                return reply
            deadline = min(deadline, time.monotonic() + _REFUSED_READ_SECONDS)
            if time.monotonic() >= deadline:
                self._give_up("unread", tool, reply)
            await self._pause()

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

    def _give_up(self, kind: str, tool: str, reply: Reply) -> NoReturn:
        self.history.note(kind, session=self.name, tool=tool, body=reply.body)
        raise GaveUpError(tool)

    async def _pause(self) -> None:
        await asyncio.sleep(_PAUSE_SECONDS * (1 + self._dice.random()))

    def new_id(self) -> str:
        """A fresh id for an action, which the same seed makes again."""
        return str(uuid.UUID(int=self._dice.getrandbits(128), version=4))
