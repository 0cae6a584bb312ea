"""Conversations without a terminal: one-shots, background sessions and jobs."""

import asyncio
import random
from typing import Any, Final

from chaos.clients.conversation import Conversation, Place, has, number_of, text_of
from chaos.wire import Reply

_READ_SECONDS: Final = 5.0
# How long a call may take that the host answers.
_HOST_SECONDS: Final = 10.0
_ONE_SHOT_SECONDS: Final = 30.0
_JOB_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 1.0
# The share of one-shots whose caller asks for the answer again.
_REPEATED: Final = 0.2


class OneShot(Conversation):
    """Runs a program that prints some lines, and is told everything in one answer."""

    async def converse(self) -> None:
        """Run the program. Raises GaveUpError."""
        lines, pause = self.dice.randint(1, 40), self.dice.choice([0.0, 0.0, 0.02])
        start = {
            "command": self.command("print", lines, pause, self.dice.randint(0, 99)),
            "timeout_seconds": _ONE_SHOT_SECONDS,
            "request_id": self.caller.new_id(),
        }
        session_id = await self._ran(start)
        if session_id and self.dice.random() < _REPEATED:
            # The repeat of a start that began nothing tries again, in another session.
            session_id = await self._ran(start)
        if session_id:
            await self.finish(session_id, "stdout", "stderr")

    async def _ran(self, start: dict[str, Any]) -> str:
        """The id of the session once it has ended; empty if the start is refused, or stuck."""
        reply = await self.caller.insist("execute_command", wait=_ONE_SHOT_SECONDS, **start)
        if reply.outcome != "ok":
            return ""
        session_id = str(reply.body["session_id"])
        return session_id if await self._ended(session_id) else ""

    async def _ended(self, session_id: str) -> bool:
        """Wait for the end: an answer may say only that the host is out of reach."""
        while has(await self.caller.read("get_session", session_id=session_id), ended_at=None):
            if self.is_stuck():
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True


class Background(Conversation):
    """Writes lines to a program that runs, and reads what it prints from call to call."""

    def __init__(self, place: Place, name: str, dice: random.Random) -> None:
        super().__init__(place, name, dice)
        self._read = {"stdout": "", "stderr": ""}
        self._lost = 0

    async def converse(self) -> None:
        """Start the program, talk to it and stop it. Raises GaveUpError."""
        reply = await self.caller.insist(
            "start_command",
            wait=_HOST_SECONDS,
            command=self.command("talk"),
            requestId=self.caller.new_id(),
        )
        if reply.outcome != "ok":
            return
        session_id = str(reply.body["sessionId"])
        for number in range(self.dice.randint(1, 12)):
            verb = self.dice.choice(["say 5", "complain 3", "work 100", "say 40"])
            if self.is_over() or not await self._said(session_id, number, verb):
                break
            await asyncio.sleep(self.dice.random())
        await self._end(session_id)

    async def _said(self, session_id: str, number: int, verb: str) -> bool:
        """Write a line, and read until it is acknowledged; False if that will not be."""
        reply = await self._write(session_id, f"{number} {verb}\n")
        if reply.outcome != "ok":
            return False
        self.progress()
        # A line in doubt (``success`` is false) may come later, or never.
        while f" {number}\n" not in self._read["stdout"]:
            if not await self._more(session_id) or self.is_stuck():
                return False
            if not has(reply, success=True):
                return True
        return True

    async def _write(self, session_id: str, text: str, *, eof: bool = False) -> Reply:
        return await self.caller.insist(
            "write_input",
            sessionId=session_id,
            input=text,
            eof=eof,
            requestId=self.caller.new_id(),
            wait=_HOST_SECONDS,
        )

    async def _more(self, session_id: str) -> bool:
        """Read once; False if the program has ended and everything was read."""
        reply = await self.caller.read(
            "read_output",
            wait=_READ_SECONDS,
            sessionId=session_id,
            timeout=_READ_SECONDS * 1000,
            requestId=self.caller.new_id(),
        )
        for stream in self._read:
            self._read[stream] += text_of(reply.body, stream)
        self._lost += number_of(reply.body, "lostBytes")
        return not has(reply, isActive=False, hasMore=False)

    async def _end(self, session_id: str) -> None:
        is_over = await self._is_asked_to_end(session_id) and await self._ends(session_id)
        if not is_over:
            await self.caller.insist(
                "stop_command",
                wait=_HOST_SECONDS,
                sessionId=session_id,
                requestId=self.caller.new_id(),
            )
            is_over = await self._ends(session_id)
        if is_over:
            await self._finish(session_id)

    async def _is_asked_to_end(self, session_id: str) -> bool:
        """Ask the program to end, or leave it to a signal; False unless the program was asked."""
        way = self.dice.choice(["exit", "eof", "stop"])
        if way == "stop":
            return False
        text = f"end exit {self.dice.randint(0, 99)}\n" if way == "exit" else ""
        return has(await self._write(session_id, text, eof=way == "eof"), success=True)

    async def _finish(self, session_id: str) -> None:
        await self.finish(session_id, "stdout", "stderr")
        self.place.history.note(
            "read",
            session=self.name,
            lost=self._lost,
            out=self._read["stdout"],
            err=self._read["stderr"],
        )

    async def _ends(self, session_id: str) -> bool:
        self.progress()
        while await self._more(session_id):
            if self.is_stuck():
                return False
        return True


class Job(Conversation):
    """Submits a program and asks after it until it is completed."""

    async def converse(self) -> None:
        """Submit the program and poll. Raises GaveUpError."""
        lines = self.dice.randint(20, 200)
        reply = await self.caller.insist(
            "run_command",
            command=self.command("print", lines, 0.05, self.dice.randint(0, 99)),
            timeout=_JOB_SECONDS,
            request_id=self.caller.new_id(),
        )
        if reply.outcome != "ok":
            return
        token, read, offsets = str(reply.body["token"]), {"stdout": "", "stderr": ""}, [0, 0]
        while not has(reply, status="completed"):
            await asyncio.sleep(_LOOK_SECONDS)
            reply = await self.caller.read(
                "query_command_status",
                token=token,
                stdout_offset=offsets[0],
                stderr_offset=offsets[1],
            )
            if self.is_stuck():
                return
            for stream in read:
                read[stream] += text_of(reply.body, stream)
            offsets = [number_of(reply.body, f"{stream}_length") for stream in read]
        await self.finish(token, "stdout", "stderr")
        self.place.history.note(
            "read", session=self.name, lost=0, out=read["stdout"], err=read["stderr"]
        )
