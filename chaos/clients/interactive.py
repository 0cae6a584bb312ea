"""Conversations on a terminal: one answer per prompt, and waits for the next one."""

import asyncio
from typing import Any, Final

from chaos.clients.conversation import Conversation, has
from chaos.wire import Reply

_WAIT_SECONDS: Final = 8.0
_MOST_TURNS: Final = 60
_SIGNALS: Final = ("9", "15")


class Interactive(Conversation):
    """Answers prompts one by one, then has the program end, ends it, or kills it."""

    wait_seconds = _WAIT_SECONDS

    async def converse(self) -> None:
        """Start a program on a terminal and answer it. Raises GaveUpError."""
        reply = await self.caller.insist("start_interactive_command", **self.start_arguments())
        if reply.outcome != "ok":
            return
        session_id = str(reply.body["session_id"])
        self.on_start(session_id)
        reply = await self.settled(session_id, reply)
        for number in range(self.dice.randint(2, _MOST_TURNS)):
            if not has(reply, state="awaiting_input") or self.is_over():
                break
            await asyncio.sleep(self.dice.random() * 0.3)
            reply = await self.turn(session_id, f"{number} {self._verb()}\n")
            if has(reply, state="awaiting_input"):
                reply = await self.between(session_id, reply)
        await self._end(session_id, reply)

    def start_arguments(self) -> dict[str, Any]:
        """The arguments of the start, and how long it may wait."""
        return {
            "wait": self.wait_seconds,
            "command": self.command("talk"),
            "wait_seconds": self.wait_seconds,
            "request_id": self.caller.new_id(),
        }

    def on_start(self, session_id: str) -> None:
        """Do what goes with a session that has just started."""

    async def between(self, _session_id: str, reply: Reply) -> Reply:
        """Do what comes between two turns; return the last answer about the session.

        Raises GaveUpError.
        """
        return reply

    def _verb(self) -> str:
        verbs = {
            "say": f"say {self.dice.randint(1, 30)}",
            "much": f"say {self.dice.randint(500, 4000)}",
            "work": f"work {self.dice.randint(1, 600)}",
            "hide": "hide",
        }
        return verbs[self.dice.choices(list(verbs), [12, 1, 5, 2])[0]]

    async def turn(self, session_id: str, text: str) -> Reply:
        """Type a line, and wait until the program waits or has ended. Raises GaveUpError."""
        reply = await self.caller.insist(
            "send_command_input",
            wait=self.wait_seconds,
            session_id=session_id,
            input_text=text,
            wait_seconds=self.wait_seconds,
            request_id=self.caller.new_id(),
        )
        self.progress()
        return await self.settled(session_id, reply)

    async def settled(self, session_id: str, reply: Reply) -> Reply:
        """Wait until the program waits or has ended. A refused input is no end of it.

        Raises GaveUpError.
        """
        while not (has(reply, state="awaiting_input") or has(reply, state="exited")):
            if self.is_stuck():
                break
            reply = await self.caller.read(
                "send_command_input",
                wait=self.wait_seconds,
                session_id=session_id,
                wait_seconds=self.wait_seconds,
                request_id=self.caller.new_id(),
            )
        return reply

    async def _end(self, session_id: str, reply: Reply) -> None:
        if has(reply, state="awaiting_input"):
            verb = self.dice.choices(["exit", "kill", "terminate"], [6, 2, 2])[0]
            if verb == "exit":
                reply = await self.turn(session_id, f"end exit {self.dice.randint(0, 99)}\n")
            elif verb == "kill":
                reply = await self.turn(session_id, f"end kill {self.dice.choice(_SIGNALS)}\n")
        if not has(reply, state="exited"):
            reply = await self.caller.insist(
                "send_command_input",
                wait=self.wait_seconds,
                session_id=session_id,
                terminate=True,
                wait_seconds=self.wait_seconds,
                request_id=self.caller.new_id(),
            )
            reply = await self.settled(session_id, reply)
        if has(reply, state="exited"):
            await self.finish(session_id, "stdout")
