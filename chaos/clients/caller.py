"""A caller that writes down each call, and repeats those of which nothing is known."""

import asyncio
import random
import re
import time
import uuid
from typing import Final, NoReturn

from chaos.history import History
from chaos.wire import NOT_KNOWN, SUSPENDED, Endpoint, Json, Reply

_PATIENCE_SECONDS: Final = 240.0
_PAUSE_SECONDS: Final = 0.5
# The longest that a caller waits for an answer beyond the wait that it asked for.
_BEYOND_SECONDS: Final = 45.0
# How long a read is repeated that is refused. No fault lasts longer.
_REFUSED_READ_SECONDS: Final = 60.0
_IDS: Final = ("request_id", "requestId")


_STARTS: Final = ("execute_command", "run_command", "start_")
_INPUTS: Final = ("input_text", "input", "eof")
_ID: Final = re.compile(r"with request_id ([0-9a-f-]{36})")


def _changes(tool: str, arguments: Json) -> bool:
    """True for a call that has another effect if it is made twice: it starts or types something."""
    return tool.startswith(_STARTS) or any(arguments.get(name) for name in _INPUTS)


def _id_in(reply: Reply) -> str:
    """The id that a refusal offers for a call that is surely new; empty if it offers none."""
    found = _ID.search(str(reply.body.get("hint", "")))
    return found[1] if found and reply.code == NOT_KNOWN else ""


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
        One whose ``request_id`` was forgotten is made under a new one if it was surely not made
        before, or if it may be made twice. Raises GaveUpError.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        may_be_done = False
        while True:
            reply = await self.once(tool, wait=wait, **arguments)
            is_new = reply.wants_a_new_id
            if reply.code == NOT_KNOWN:
                is_new = not (may_be_done and _changes(tool, arguments))
            if not (reply.is_worth_repeating or is_new):
                return reply
            if time.monotonic() > deadline:
                self._give_up("gave_up", tool, reply)
            may_be_done = not is_new and (may_be_done or reply.code != SUSPENDED)
            if is_new:
                fresh = _id_in(reply) or self.new_id()
                arguments |= {key: fresh for key in _IDS if key in arguments}
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
