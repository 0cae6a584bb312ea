"""Conversations on a terminal: one answer per prompt, and waits for the next one."""

import asyncio
from typing import Final

from chaos.clients.conversation import Conversation, has
from chaos.wire import Reply

_WAIT_SECONDS: Final = 8.0
_MOST_TURNS: Final = 60
_SIGNALS: Final = ("9", "15")


class Interactive(Conversation):
    """Answers prompts one by one, then has the program end, ends it, or kills it."""

    async def converse(self) -> None:
        """Start a program on a terminal and answer it. Raises GaveUpError."""
        reply = await self.caller.insist(
            "start_interactive_command",
            wait=_WAIT_SECONDS,
            command=self.command("talk"),
            wait_seconds=_WAIT_SECONDS,
            request_id=self.caller.new_id(),
        )
        if reply.outcome != "ok":
            return
        session_id = str(reply.body["session_id"])
        reply = await self._settled(session_id, reply)
        for number in range(self.dice.randint(2, _MOST_TURNS)):
            if not has(reply, state="awaiting_input") or self.is_over():
                break
            await asyncio.sleep(self.dice.random() * 0.3)
            reply = await self._turn(session_id, f"{number} {self._verb()}\n")
        await self._end(session_id, reply)

    def _verb(self) -> str:
        verbs = {
            "say": f"say {self.dice.randint(1, 30)}",
            "much": f"say {self.dice.randint(500, 4000)}",
            "work": f"work {self.dice.randint(1, 600)}",
            "hide": "hide",
        }
        return verbs[self.dice.choices(list(verbs), [12, 1, 5, 2])[0]]

    async def _turn(self, session_id: str, text: str) -> Reply:
        reply = await self.caller.insist(
            "send_command_input",
            wait=_WAIT_SECONDS,
            session_id=session_id,
            input_text=text,
            wait_seconds=_WAIT_SECONDS,
            request_id=self.caller.new_id(),
        )
        self.progress()
        return await self._settled(session_id, reply)

    async def _settled(self, session_id: str, reply: Reply) -> Reply:
        """Wait until the program waits or has ended. A refused input is no end of it."""
        while not (has(reply, state="awaiting_input") or has(reply, state="exited")):
            if self.is_stuck():
                break
            reply = await self.caller.read(
                "send_command_input",
                wait=_WAIT_SECONDS,
                session_id=session_id,
                wait_seconds=_WAIT_SECONDS,
                request_id=self.caller.new_id(),
            )
        return reply

    async def _end(self, session_id: str, reply: Reply) -> None:
        if has(reply, state="awaiting_input"):
            verb = self.dice.choices(["exit", "kill", "terminate"], [6, 2, 2])[0]
            if verb == "exit":
                reply = await self._turn(session_id, f"end exit {self.dice.randint(0, 99)}\n")
            elif verb == "kill":
                reply = await self._turn(session_id, f"end kill {self.dice.choice(_SIGNALS)}\n")
        if not has(reply, state="exited"):
            reply = await self.caller.insist(
                "send_command_input",
                wait=_WAIT_SECONDS,
                session_id=session_id,
                terminate=True,
                wait_seconds=_WAIT_SECONDS,
                request_id=self.caller.new_id(),
            )
            reply = await self._settled(session_id, reply)
        if has(reply, state="exited"):
            await self.finish(session_id, "stdout")
