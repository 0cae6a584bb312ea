"""Calls that wait for a person, with kill -9 of server and daemon between any two of their steps.

The steps: asked, told, answered, written, sent, applied, stored, returned. The person is asked and
told once, the call is carried out at most once, and the caller's repeat gets the one result.
"""

import asyncio
import random
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest

from tests.support.management import manage_well
from tests.support.stack import Stack, running_stack
from tests.support.targets.listener import Listener, listening
from tests.support.waiting import await_until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(3600)]
PATIENCE_SECONDS: Final = 120.0
START: Final = "SELECT id FROM projects_controllercommand WHERE type = 'START_INTERACTIVE_CMD'"
PENDING: Final = "SELECT id FROM projects_approval WHERE answer = 'pending'"


class Held:
    """One call under ``ask-all`` that leaves a line in a file whenever it is carried out."""

    def __init__(self, stack: Stack, token: str, folder: Path, listener: Listener) -> None:
        self.stack, self._token, self.listener = stack, token, listener
        self.call_under_way: asyncio.Task[Any] | None = None
        listener.requests.clear()
        self.file = folder / str(uuid4())
        self.call = {
            "command": f"sh -c 'echo once >> {self.file}; sleep 0.2; echo done'",
            "request_id": str(uuid4()),
            "wait_seconds": 20,
        }

    async def make(self, **changes: Any) -> dict[str, Any]:
        """Make the call, and return its result or the body of its error."""
        async with self.stack.caller(self._token) as caller:
            answer = await caller.client.call_tool(
                "start_interactive_command", {**self.call, **changes}
            )
        if answer.is_error:
            return dict((answer.meta or {})["holdline/error"])
        return dict(answer.structured_content or {})

    async def await_rows(self, query: str, what: str) -> None:
        """Wait until ``query`` finds something."""
        await await_until(lambda: bool(self.stack.database.rows(query)), 90, what)

    def begin(self) -> None:
        """Make the call without waiting for it. The test may kill the server meanwhile."""
        self.call_under_way = asyncio.create_task(self.make())

    async def lose(self) -> None:
        """Await a call whose server was killed: its client meets some error, or has its result."""
        if self.call_under_way is not None:
            await asyncio.gather(self.call_under_way, return_exceptions=True)

    async def ask(self) -> None:
        assert (await self.make(wait_seconds=0))["code"] == "APPROVAL_PENDING"

    def answer(self) -> None:
        """Approve the call with a command, which needs no server."""
        ((number,),) = self.stack.database.rows(PENDING)
        assert "answered" in manage_well(self.stack, "answer_approval", str(number), "--approve")

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
        assert self.stack.database.rows(PENDING) == []
        told = {request.headers["webhook-id"] for request in self.listener.requests}
        # An answer that comes before the message leaves nothing to be told.
        assert len([number for number in told if self._is_wanted(number)]) <= 1

    def _is_wanted(self, number: str) -> bool:
        return any(
            request.headers["webhook-id"] == number and b"attention.approval_wanted" in request.body
            for request in self.listener.requests
        )


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Callable[[], Held]]:
    """Calls on one stack, whose project tells a listener at once that an approval is wanted."""
    allowed = {"HOLDLINE_ATTENTION_NETWORKS": "127.0.0.0/8"}
    with listening() as listener, running_stack(server_environment=allowed) as stack:
        stack.database.execute(
            "UPDATE projects_project SET attention_seconds = ?", '{"approval_wanted": 0}'
        )
        set_target = ("set_attention_target", "first", "ops", "--way", "webhook")
        manage_well(stack, *set_target, stdin=f"{listener.url}/hook\n")
        options = ("--name", "held", "--approvals", "ask-all")
        made = manage_well(stack, "create_api_token", "first", *options)
        token = made.strip().splitlines()[-1]
        yield lambda: Held(stack, token, tmp_path, listener)


# ---- each of these brings a call to a step, and not to the next one ------------------------------


async def _asked(one: Held) -> None:
    one.listener.is_silent = True
    one.begin()
    await one.await_rows(PENDING, "the question")


async def _told(one: Held) -> None:
    await one.ask()
    await await_until(lambda: one.listener.requests, 90, "the message")


async def _answered(one: Held) -> None:
    await one.ask()
    one.answer()


async def _answered_while_it_waits(one: Held) -> None:
    assert one.stack.daemon is not None
    one.begin()
    await one.await_rows(PENDING, "the question")
    one.stack.daemon.send_signal(signal.SIGSTOP)
    one.answer()


async def _sent(one: Held) -> None:
    await _answered(one)
    assert one.stack.daemon is not None
    one.stack.daemon.send_signal(signal.SIGSTOP)
    one.begin()
    await one.await_rows(f"{START} AND settled_at IS NULL", "the row of the command")


async def _applied(one: Held) -> None:
    await _answered(one)
    one.begin()
    await await_until(one.file.exists, 90, "the program to act")


async def _stored(one: Held) -> None:
    await _applied(one)
    newest = "SELECT state FROM projects_commandsession ORDER BY created_at DESC LIMIT 1"
    ended = f"SELECT 1 FROM ({newest}) AS newest WHERE state = 'EXITED'"
    await one.await_rows(ended, "the result to be stored")


STEPS: Final[dict[str, Callable[[Held], Awaitable[None]]]] = {
    "asked": _asked,
    "told": _told,
    "answered": _answered,
    "answered while it waits": _answered_while_it_waits,
    "sent": _sent,
    "applied": _applied,
    "stored": _stored,
}
KILLED: Final = ({"server"}, {"daemon"}, {"server", "daemon"})
LONG_ROUNDS: Final = 4


async def _outlives(one: Held, killed: set[str]) -> None:
    """Kill, start again what was killed, let the person answer, and check the call."""
    stack = one.stack
    assert stack.daemon is not None
    if "server" in killed:
        stack.kill_server()
    if "daemon" in killed:
        stack.kill_daemon()
    else:
        stack.daemon.send_signal(signal.SIGCONT)
    one.listener.release()
    if "server" in killed:
        await one.lose()
        stack.start_server()
    if "daemon" in killed:
        stack.start_daemon()
    if stack.database.rows(PENDING):
        one.answer()
    await one.lose()
    await one.check()


async def test_a_kill_after_any_step(held: Callable[[], Held], is_long: bool) -> None:
    for number, (step, bring) in enumerate(STEPS.items()):
        every_third = (KILLED[number % len(KILLED)],)
        for killed in LONG_ROUNDS * KILLED if is_long else every_third:
            one = held()
            await bring(one)
            try:
                await _outlives(one, killed)
            except AssertionError as error:
                raise AssertionError(f"{sorted(killed)} after {step!r}: {error}") from error


async def test_kills_at_random_moments(held: Callable[[], Held], is_long: bool) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    for number in range(200 if is_long else 2):
        one = held()
        await _answered(one)
        one.begin()
        assert one.call_under_way is not None
        await asyncio.wait({one.call_under_way}, timeout=chance.uniform(0, 0.5))
        try:
            await _outlives(one, {"server"} if chance.random() < 0.5 else {"server", "daemon"})
        except AssertionError as error:
            raise AssertionError(f"round {number} with seed {seed}: {error}") from error
