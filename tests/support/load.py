"""A steady load of turns on a stack, whose every answer and every byte is known beforehand.

Each conversation is one real program that confirms numbered lines and writes them to a file. Its
caller types line after line, at a steady pace, over plain HTTP. A call that is
not answered is repeated with the same ``request_id`` until it is.
"""

import asyncio
import itertools
import json
import shlex
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.support.mcp.light_client import LightCaller, NotAnsweredError
from tests.support.stack import Stack
from tests.support.waiting import await_until

CALL_SECONDS: Final = 45.0
"""Longer than any answer takes. An answer that has not come by then is lost."""
GIVE_UP_SECONDS: Final = 150.0
EXIT_CODE: Final = 7
_RETRY_SECONDS: Final = 0.05


@dataclass
class Conversation:
    """One program and its caller.

    ``turns`` counts the finished turns, ``slowest_seconds`` is the longest of them. ``repeated``
    counts the calls that were not answered and were made again.
    """

    stack: Stack
    caller: LightCaller
    log: Path
    turns: int = 0
    slowest_seconds: float = 0.0
    repeated: int = 0
    session_id: str = ""

    async def begin(self) -> None:
        """Start the program, and wait for its first prompt."""
        confirm = (
            f'while read -r line; do echo "$line" >> {shlex.quote(str(self.log))}; echo "ack '
            f'$line"; done; exit {EXIT_CODE}'
        )
        answer = await self._insist(
            "start_interactive_command",
            command=shlex.join(["bash", "-c", confirm]),
            request_id=str(uuid4()),
        )
        self.session_id = answer["session_id"]
        await self._settled(answer, "awaiting_input")

    async def turn(self) -> None:
        """Type the next line, and check the answer.

        The output must be the confirmation of the line, whole and alone, at its place in the
        stream.
        """
        began = time.monotonic()
        answer = await self._insist(
            "send_command_input",
            session_id=self.session_id,
            input_text=f"line {self.turns}\n",
            request_id=str(uuid4()),
            wait_seconds=20,
        )
        start, text, end = await self._settled(answer, "awaiting_input")
        assert text.split() == ["line", f"{self.turns}", "ack", "line", f"{self.turns}"], (
            self.turns,
            text,
        )
        assert (start, end) == (len(_transcript(self.turns)), len(_transcript(self.turns + 1))), (
            self.turns,
            start,
            end,
        )
        self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)
        self.turns += 1

    async def end(self) -> None:
        """End the program's input, and check everything that the session left.

        These are its exit code, its stored output, the digest, and the file that the program wrote.
        """
        answer = await self._insist(
            "send_command_input",
            session_id=self.session_id,
            keys=["ctrl-d"],
            request_id=str(uuid4()),
            wait_seconds=20,
        )
        await self._settled(answer, "exited")
        receipt = await self._insist("get_session", session_id=self.session_id)
        assert (receipt["exit_code"], receipt["end_reason"]) == (EXIT_CODE, "exited")
        database = self.stack.database
        assert await asyncio.to_thread(database.transcript, self.session_id) == _transcript(
            self.turns
        )
        await database.await_verified(self.session_id, 60)
        assert self.log.read_text().splitlines() == [
            f"line {number}" for number in range(self.turns)
        ]

    async def _settled(self, answer: dict[str, Any], state: str) -> tuple[int, str, int]:
        """The (offset, output, end) of a turn that may take more than one call."""
        start, text = answer["offset"], answer["output"]
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while answer["state"] == "running":
            assert time.monotonic() < deadline, f"the turn is not over: {answer}"
            place = answer["next_offset"]
            answer = await self._insist(
                "send_command_input", session_id=self.session_id, wait_seconds=20
            )
            # The output of a lost answer counts as shown, so it is read again by its offset.
            if answer["offset"] > place:
                text += (
                    await self._insist(
                        "read_session_output", session_id=self.session_id, offset=place
                    )
                )["output"]
            else:
                text += answer["output"]
        assert answer["state"] == state, answer
        return start, text, answer["total_bytes"]

    async def _insist(self, tool: str, **arguments: Any) -> dict[str, Any]:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while True:
            try:
                return await self._call(tool, arguments)
            except (NotAnsweredError, TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise AssertionError(f"{tool} was never answered: {error!r}") from error
                self.repeated += 1
                await asyncio.sleep(_RETRY_SECONDS)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(CALL_SECONDS):
            status, answer = await self.caller.ask(tool, **arguments)
        if status in {502, 503}:
            raise NotAnsweredError(f"{status}")
        assert status == 200, answer
        result = answer["result"]
        if result.get("isError"):
            error = json.loads(result["content"][0]["text"])
            assert error["retryable"], error
            raise NotAnsweredError(error["code"])
        return dict(result["structuredContent"])


def _transcript(turns: int) -> bytes:
    return "".join(f"line {number}\r\nack line {number}\r\n" for number in range(turns)).encode()


@dataclass
class Load:
    """The conversations that are going on."""

    conversations: list[Conversation]
    tasks: list[asyncio.Task[None]] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)

    async def progress(self, turns: int = 3, seconds: float = GIVE_UP_SECONDS) -> None:
        """Return when each conversation has had ``turns`` more turns.

        Raises the error of a conversation that fails.
        """
        wanted = [conversation.turns + turns for conversation in self.conversations]

        def is_far_enough() -> bool:
            for task in self.tasks:
                if task.done():
                    task.result()
            return all(
                conversation.turns >= turns
                for conversation, turns in zip(self.conversations, wanted, strict=True)
            )

        await await_until(is_far_enough, seconds, f"{turns} more turns of each conversation")

    @property
    def turns(self) -> int:
        """The number of finished turns of all conversations."""
        return sum(conversation.turns for conversation in self.conversations)

    @property
    def slowest_seconds(self) -> float:
        """The longest turn so far, which is the longest stall."""
        return max(conversation.slowest_seconds for conversation in self.conversations)

    def report(self, what: str, seconds: float) -> str:
        """One line for people who read the output of the tests."""
        repeated = sum(conversation.repeated for conversation in self.conversations)
        rate = self.turns / seconds
        return (
            f"{what}: {self.turns} turns, {rate:.0f}/s, longest stall "
            f"{self.slowest_seconds:.2f} s, {repeated} calls repeated"
        )


async def _converse(
    conversation: Conversation,
    interval_seconds: float,
    delay_seconds: float,
    is_over: asyncio.Event,
) -> None:
    await conversation.begin()
    due = time.monotonic() + delay_seconds
    while not is_over.is_set():
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        await conversation.turn()
        # After a stall the conversation goes on at its pace and does not catch up.
        due = max(due + interval_seconds, time.monotonic())
    await conversation.end()


@asynccontextmanager
async def steady_load(
    stack: Stack,
    directory: Path,
    *,
    what: str,
    conversations: int = 10,
    turns_per_second: float = 50.0,
) -> AsyncIterator[Load]:
    """Load in the block, of at most ``turns_per_second`` in all.

    After the block everything is checked and a line printed.
    """
    load = Load(
        [_conversation(stack, directory / f"lines{number}") for number in range(conversations)]
    )
    interval = conversations / turns_per_second
    for conversation, number in zip(load.conversations, itertools.count(), strict=False):
        converse = _converse(conversation, interval, number / turns_per_second, load.is_over)
        load.tasks.append(asyncio.create_task(converse))
    began = time.monotonic()
    try:
        await load.progress()
        yield load
        seconds = time.monotonic() - began
        load.is_over.set()
        async with asyncio.timeout(GIVE_UP_SECONDS):
            await asyncio.gather(*load.tasks)
        sys.stdout.write(f"{load.report(what, seconds)}\n")
    finally:
        for task in load.tasks:
            task.cancel()
        await asyncio.gather(*load.tasks, return_exceptions=True)


def _conversation(stack: Stack, log: Path) -> Conversation:
    return Conversation(
        stack,
        LightCaller("127.0.0.1", stack.port, stack.provisioned.token, is_kept=False),
        log,
    )
