"""Calls that wait for a person, with kill -9 of server and daemon between any two of their steps.

Asked once, carried out at most once, and the caller's repeat gets the one result.
"""

import asyncio
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.management import manage_well
from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(3600)]
PATIENCE_SECONDS = 120.0
PENDING = "SELECT id FROM projects_approval WHERE answer = 'pending'"


class Held:
    """One call under ``ask-all`` that leaves a line in a file whenever it is carried out."""

    def __init__(self, stack: Stack, token: str, folder: Path) -> None:
        self._stack, self._token = stack, token
        self.file = folder / str(uuid4())
        self.call = {
            "command": f"sh -c 'echo once >> {self.file}; sleep 0.2; echo done'",
            "request_id": str(uuid4()),
            "wait_seconds": 20,
        }

    async def make(self, **changes: Any) -> dict[str, Any]:
        """Make the call, and return its result or the body of its error."""
        async with self._stack.caller(self._token) as caller:
            answer = await caller.client.call_tool(
                "start_interactive_command", {**self.call, **changes}
            )
        if answer.is_error:
            return dict((answer.meta or {})["holdline/error"])
        return dict(answer.structured_content or {})

    async def ask(self) -> None:
        assert (await self.make(wait_seconds=0))["code"] == "APPROVAL_PENDING"

    def answer(self) -> None:
        """Approve the call with a command, which needs no server."""
        ((number,),) = self._stack.database.rows(PENDING)
        assert "answered" in manage_well(self._stack, "answer_approval", str(number), "--approve")

    async def result(self) -> dict[str, Any]:
        """Repeat the call until it has its result."""
        while True:
            body = await self.make()
            if "output" in body and body["state"] == "exited":
                return body
            assert body.get("retryable", True), body
            await asyncio.sleep(0)

    async def check(self) -> None:
        """The call was asked about once and carried out once, and repeats agree."""
        results = [await asyncio.wait_for(self.result(), PATIENCE_SECONDS) for _ in range(2)]
        assert results[0]["session_id"] == results[1]["session_id"]
        assert "done" in results[0]["output"]
        assert self.file.read_text() == "once\n"
        assert self._stack.database.rows(PENDING) == []


@pytest.fixture
def held(own_stack: Stack, tmp_path: Path) -> Callable[[], Held]:
    options = ("--name", "held", "--approvals", "ask-all")
    token = manage_well(own_stack, "create_api_token", "first", *options).strip().splitlines()[-1]
    return lambda: Held(own_stack, token, tmp_path)


async def _lost(call: "asyncio.Task[Any]") -> None:
    """The client of a killed server meets an error, whichever it is."""
    await asyncio.gather(call, return_exceptions=True)


async def test_a_question_outlives_the_server_that_asked_it(
    own_stack: Stack, held: Callable[[], Held]
) -> None:
    one = held()
    await one.ask()
    own_stack.kill_server()
    one.answer()
    own_stack.start_server()
    await one.check()


async def test_a_call_that_waited_finds_the_answer_after_a_kill(
    own_stack: Stack, held: Callable[[], Held]
) -> None:
    one = held()
    waiting = asyncio.create_task(one.make())
    await await_until(lambda: bool(own_stack.database.rows(PENDING)), 30, "the question")
    own_stack.kill_server()
    await _lost(waiting)
    own_stack.start_server()
    one.answer()
    await one.check()


async def test_a_command_that_was_sent_and_not_applied_is_applied_once(
    own_stack: Stack, held: Callable[[], Held]
) -> None:
    one = held()
    await one.ask()
    one.answer()
    assert own_stack.daemon is not None
    own_stack.daemon.send_signal(signal.SIGSTOP)
    call = asyncio.create_task(one.make())
    row = "SELECT id FROM projects_controllercommand WHERE type = 'START_INTERACTIVE_CMD'"
    await await_until(lambda: bool(own_stack.database.rows(row)), 30, "the row of the command")
    own_stack.kill_server()
    await _lost(call)
    own_stack.daemon.send_signal(signal.SIGCONT)
    own_stack.start_server()
    await one.check()


async def test_an_applied_command_whose_result_is_not_stored_is_not_repeated(
    own_stack: Stack, held: Callable[[], Held]
) -> None:
    one = held()
    await one.ask()
    one.answer()
    call = asyncio.create_task(one.make())
    await await_until(one.file.exists, 30, "the program to act")
    own_stack.kill_server()
    own_stack.kill_daemon()
    await _lost(call)
    own_stack.start_server()
    own_stack.start_daemon()
    await one.check()


async def test_kills_at_random_moments(
    own_stack: Stack, held: Callable[[], Held], is_long: bool
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    for number in range(200 if is_long else 3):
        one = held()
        await one.ask()
        one.answer()
        call = asyncio.create_task(one.make())
        await asyncio.wait({call}, timeout=chance.uniform(0, 0.5))
        is_daemon_killed = chance.random() < 0.5
        if is_daemon_killed:
            own_stack.kill_daemon()
        own_stack.kill_server()
        await _lost(call)
        own_stack.start_server()
        if is_daemon_killed:
            own_stack.start_daemon()
        try:
            await one.check()
        except AssertionError as error:
            raise AssertionError(f"round {number} with seed {seed}: {error}") from error
