"""Conversations that a person takes over now and then, and hands back."""

import asyncio
import time
from typing import Any, Final

from chaos.clients.conversation import has, number_of
from chaos.clients.interactive import Interactive
from chaos.clients.people.operator import Operator
from chaos.wire import Reply

_TAKEN: Final = 0.3
_MOST_LINES: Final = 4
_SHORT_LIVED: Final = 0.3
_LIFETIME_SECONDS: Final = 20.0
# A person stays for most of a short lifetime, so that its clock has to stand still.
_STAY_SECONDS: Final = 15.0
_LOOK_SECONDS: Final = 1.0


class Taken(Interactive):
    """A conversation on a terminal whose keyboard goes to a person and comes back.

    Some have a short lifetime, and end by it. Its clock stands still while the person types.
    """

    async def converse(self) -> None:
        """Hold the conversation, and close the page at its end. Raises GaveUpError."""
        self._operator: Operator | None = None
        self._visits = 0
        self._is_short_lived = self.dice.random() < _SHORT_LIVED
        try:
            await super().converse()
        finally:
            if self._operator is not None:
                await self._operator.close()

    def start_arguments(self) -> dict[str, Any]:
        """The arguments of the start, with a short lifetime for some."""
        lifetime = {"lifetime_seconds": _LIFETIME_SECONDS} if self._is_short_lived else {}
        return {**super().start_arguments(), **lifetime}

    def on_start(self, session_id: str) -> None:
        """Open the page at which the operator sits."""
        self._operator = Operator(self.place, self.name, session_id, "operator", 0)

    async def between(self, session_id: str, reply: Reply) -> Reply:
        """Have the operator come by, now and then. Raises GaveUpError."""
        if not self._is_short_lived and self.dice.random() > _TAKEN:
            return reply
        assert self._operator is not None
        if await self._operator.take():
            await self._visit(self._operator, session_id, number_of(reply.body, "next_offset"))
        reply = await self._look(session_id)
        while self._is_short_lived and not has(reply, state="exited") and not self.is_stuck():
            await asyncio.sleep(_LOOK_SECONDS)
            reply = await self._look(session_id)
        self.progress()
        return await self.settled(session_id, reply)

    async def _visit(self, operator: Operator, session_id: str, offset: int) -> None:
        """Type some lines while the agent tries the same, and hand back."""
        self._visits += 1
        began = time.monotonic()
        for number in range(self.dice.randint(1, _MOST_LINES)):
            line = f"p{self._visits}.{number} say 3"
            if not (await operator.has_seen(offset) and await operator.type_line(line)):
                break
            if number == 0:
                await self._try_to_type(session_id)
        if self._is_short_lived:
            await asyncio.sleep(max(0.0, began + _STAY_SECONDS - time.monotonic()))
        await operator.hand_back(f"note {self._visits} of {self.name}")

    async def _try_to_type(self, session_id: str) -> None:
        """Type as the agent, which is refused while the operator has the keyboard."""
        await self.caller.insist(
            "send_command_input",
            session_id=session_id,
            input_text=f"a{self._visits} say 1\n",
            wait_seconds=0,
            request_id=self.caller.new_id(),
        )

    async def _look(self, session_id: str) -> Reply:
        return await self.caller.read(
            "send_command_input",
            session_id=session_id,
            wait_seconds=0,
            request_id=self.caller.new_id(),
        )

    async def finish(self, session_id: str, *streams: str) -> None:
        """Ask for the receipt, and wait until the page has shown everything."""
        await super().finish(session_id, *streams)
        if self._operator is not None:
            await self._operator.finished(self.totals["stdout"])
