"""Calls of the official client that wait for a person: held, answered, carried out once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import ElicitResult

from tests.support.management import manage_well
from tests.support.mcp.client import Caller, detached
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until

Show = Callable[[Any, Any], Awaitable[ElicitResult]]


@pytest.fixture(scope="session")
def held_token(stack: Stack) -> str:
    """A token all of whose calls that act wait for a person."""
    options = ("--name", "held", "--approvals", "ask-all")
    return manage_well(stack, "create_api_token", "first", *options).strip().splitlines()[-1]


@pytest.fixture
def own_public() -> Iterator[Stack]:
    """A stack that knows by which origin people reach it."""
    environment = {"HOLDLINE_PUBLIC_URL": "https://holdline.example.com"}
    with running_stack(server_environment=environment) as stack:
        yield stack


@pytest.fixture
async def held(stack: Stack, held_token: str) -> AsyncIterator[Caller]:
    async with detached(stack.caller(held_token)) as caller:
        yield caller


async def _answer(stack: Stack, approval_id: int, *answer: str) -> None:
    said = await asyncio.to_thread(manage_well, stack, "answer_approval", str(approval_id), *answer)
    assert "answered" in said


def _questions(stack: Stack) -> set[int]:
    """The numbers of all open questions; the database tells them faster than a command."""
    return {
        int(number)
        for (number,) in stack.database.rows(
            "SELECT id FROM projects_approval WHERE answer = 'pending'"
        )
    }


async def _asked(stack: Stack, before: set[int]) -> int:
    """The number of the one question that is open and was not ``before``, once it is asked."""
    (number,) = await await_until(lambda: _questions(stack) - before, 60, "the question")
    return int(number)


async def test_a_call_returns_its_result_if_a_person_answers_meanwhile(
    stack: Stack, held: Caller, tmp_path: Path
) -> None:
    mark, before = f"marked-{uuid4()}", _questions(stack)
    call = asyncio.create_task(
        held.call("start_interactive_command", command=f"echo {mark}", wait_seconds=30)
    )
    await _answer(stack, await _asked(stack, before), "--approve")
    assert mark in (await call)["output"]


async def test_a_repeat_finds_the_one_execution(stack: Stack, held: Caller, tmp_path: Path) -> None:
    file = tmp_path / "times"
    arguments = {"command": f"sh -c 'echo once >> {file}; cat {file}'"}
    arguments_now: dict[str, Any] = {**arguments, "wait_seconds": 0}
    pending = await held.refusal("start_interactive_command", **arguments_now)
    assert pending["code"] == "APPROVAL_PENDING"
    assert pending["retryable"]
    assert pending["approval_url"].endswith(f"/approvals/{pending['approval_id']}/")
    again = await held.refusal("start_interactive_command", **arguments_now)
    assert again["approval_id"] == pending["approval_id"]
    assert not file.exists()
    await _answer(stack, pending["approval_id"], "--approve")
    repeated = {**arguments, "request_id": pending["request_id"]}
    results = await asyncio.gather(
        *(held.call("start_interactive_command", **repeated) for _ in range(3))
    )
    assert {result["session_id"] for result in results} == {results[0]["session_id"]}
    assert file.read_text() == "once\n"
    changed = {**repeated, "command": "true"}
    assert (await held.refusal("start_interactive_command", **changed))["code"] == (
        "REQUEST_ID_REUSED"
    )


async def test_the_caller_is_shown_why_a_call_was_denied(stack: Stack, held: Caller) -> None:
    request_id = str(uuid4())
    call = {"command": "echo denied", "wait_seconds": 0, "request_id": request_id}
    pending = await held.refusal("start_interactive_command", **call)
    assert pending["request_id"] == request_id
    await _answer(stack, pending["approval_id"], "--deny", "--reason", "use staging")
    denied = await held.refusal("start_interactive_command", **call)
    assert (denied["code"], denied["retryable"]) == ("DENIED_BY_OPERATOR", False)
    assert "use staging" in denied["error"]


async def test_an_input_is_typed_only_at_the_prompt_that_was_approved(
    stack: Stack, held: Caller, caller: Caller
) -> None:
    asks = 'bash -c \'read -p "One? " x; read -p "Two? " y; echo $x-$y; read -p "Three? " z\''
    async with caller.terminal(asks) as terminal:
        typed = {"session_id": terminal.session_id, "input_text": "held\n", "wait_seconds": 0}
        pending = await held.refusal("send_command_input", **typed)
        await terminal.send("first\n")
        await _answer(stack, pending["approval_id"], "--approve")
        typed |= {"request_id": pending["request_id"]}
        refused = await held.refusal("send_command_input", **typed)
        assert refused["code"] == "CHANGED_SINCE_APPROVAL"
        await terminal.send("second\n")
        assert "first-second" in terminal.seen


@pytest.mark.parametrize(
    ("tool", "line", "is_home"),
    [
        ("start_interactive_command", "sh deploy.sh", False),
        ("execute_command", "sh deploy.sh", False),
        ("execute_command", "sh deploy.sh", True),
        ("execute_command", "sh ~/deploy.sh", True),
        ("execute_command", "script=deploy; sh $PWD/${script}.*", False),
    ],
)
async def test_a_script_that_was_exchanged_since_it_was_approved_is_not_run(
    stack: Stack, held: Caller, tmp_path: Path, tool: str, line: str, is_home: bool
) -> None:
    script, done = tmp_path / "deploy.sh", tmp_path / "done"
    script.write_text("echo harmless\n")
    place = {"env": {"HOME": str(tmp_path)}} if is_home else {"cwd": str(tmp_path)}
    call: dict[str, Any] = {"command": line, **place}
    pending = await held.refusal(tool, **call)
    await _answer(stack, pending["approval_id"], "--approve")
    script.write_text(f"touch {done}\n")
    call["request_id"] = pending["request_id"]
    refused = await held.refusal(tool, **call)
    assert refused["code"] == "CHANGED_SINCE_APPROVAL"
    assert "deploy.sh" in refused["error"]
    assert not done.exists()
    script.write_text("echo harmless\n")
    assert "harmless" in str(await held.call(tool, **call))


async def test_reading_waiting_and_resizing_are_not_held(held: Caller, caller: Caller) -> None:
    async with caller.terminal("cat") as terminal:
        ids = {"session_id": terminal.session_id}
        assert (await held.call("send_command_input", **ids, wait_seconds=0))["is_alive"]
        assert (await held.call("resize_session", **ids, rows=30, cols=90))["rows"] == 30
        assert (await held.call("read_session_output", **ids))["session_id"] == ids["session_id"]
        await held.call("list_sessions")


@asynccontextmanager
async def showing_client(stack: Stack, show: Show) -> AsyncIterator[Client]:
    """A client that opens addresses for its user, with a token that is held."""
    options = ("--name", f"held-{uuid4()}", "--approvals", "ask-all")
    said = await asyncio.to_thread(manage_well, stack, "create_api_token", "first", *options)
    headers = {"Authorization": f"Bearer {said.strip().splitlines()[-1]}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(
            streamable_http_client(stack.url, http_client=http), elicitation_callback=show
        ) as client,
    ):
        yield client


async def test_a_client_that_opens_addresses_is_shown_a_page_once(own_public: Stack) -> None:
    shown, answers = list[str](), iter(("--approve", "--deny", ""))

    async def show(_context: Any, params: Any) -> ElicitResult:
        shown.append(params.url)
        if answer := next(answers):
            await _answer(own_public, int(params.url.rstrip("/").rpartition("/")[2]), answer)
        return ElicitResult(action="accept")

    async with showing_client(own_public, show) as client:
        call = {"command": "echo shown", "wait_seconds": 30}
        result = await client.call_tool("start_interactive_command", call)
        assert not result.is_error
        assert "shown" in (result.structured_content or {})["output"]
        result = await client.call_tool("start_interactive_command", call)
        assert "DENIED_BY_OPERATOR" in str(result.content)
        for _repeat in range(2):
            result = await client.call_tool("start_interactive_command", call | {"wait_seconds": 0})
            assert "APPROVAL_PENDING" in str(result.content)
    assert len(shown) == 3
    assert shown[0].startswith("https://holdline.example.com/approvals/")


async def test_a_call_waits_if_its_page_has_no_address(stack: Stack) -> None:
    async def show(_context: Any, _params: Any) -> ElicitResult:
        raise AssertionError("a path was shown")

    async with showing_client(stack, show) as client:
        before = _questions(stack)
        call = {"command": f"echo marked-{uuid4()}", "wait_seconds": 30}
        waiting = asyncio.create_task(client.call_tool("start_interactive_command", call))
        await _answer(stack, await _asked(stack, before), "--approve")
        assert not (await waiting).is_error
