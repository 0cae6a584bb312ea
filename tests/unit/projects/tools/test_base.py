"""The one way to call a tool: whatever goes wrong is the one error body, and no value is repeated in it."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID, uuid4

import pytest
from pydantic import Field

from projects import errors
from projects.authentication import Caller
from projects.tools.base import COMMON_CODES, Tool, ToolInput, ToolOutput

READER = Caller(uuid4(), "token:reader", frozenset({"session:read"}))


class _Input(ToolInput):
    session_id: UUID
    count: Annotated[int, Field(ge=1, le=3)] = 1
    keys: tuple[str, ...] = ()
    at: datetime | None = None


class _Output(ToolOutput):
    count: int
    at: datetime
    note: str | None = Field(default=None, exclude_if=lambda note: note is None)


def _tool(handler: Any, **changes: Any) -> Tool[_Input]:
    fields: dict[str, Any] = {
        "name": "example",
        "title": "Example",
        "description": "Does.",
        "guidance": "Well.",
        "input_model": _Input,
        "output_model": _Output,
        "handler": handler,
        "scopes": ("session:read",),
        "errors": (errors.SessionNotFound, errors.InputRefused),
    }
    return Tool(**{**fields, **changes})


async def _echo(arguments: _Input, caller: Caller) -> dict[str, Any]:
    return {"count": arguments.count, "at": datetime(2026, 11, 20, tzinfo=UTC), "more": caller.label}


async def test_a_result_is_validated_and_the_same_as_json_text() -> None:
    outcome = await _tool(_echo).call({"session_id": str(uuid4()), "count": "2"}, READER)
    assert outcome.body == {"count": 2, "at": "2026-11-20T00:00:00Z"}
    assert json.loads(outcome.text) == outcome.body
    assert not outcome.is_error


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "session_id"),
        ({"session_id": "hunter2"}, "must be a uuid"),
        ({"session_id": str(uuid4()), "count": 4}, "count"),
        ({"session_id": str(uuid4()), "count": "hunter2"}, "count"),
        ({"session_id": str(uuid4()), "keys": "hunter2"}, "keys"),
        ({"session_id": str(uuid4()), "keys": [7]}, "keys"),
        ({"session_id": str(uuid4()), "at": "hunter2"}, "at"),
    ],
)
async def test_a_wrong_argument_is_named_and_its_value_is_not_repeated(arguments: dict[str, Any], named: str) -> None:
    outcome = await _tool(_echo).call(arguments, READER)
    assert (outcome.is_error, outcome.body["code"]) == (True, "INVALID_ARGUMENT")
    assert named in outcome.body["error"]
    assert "hunter2" not in outcome.text


async def test_an_unknown_argument_names_the_known_ones() -> None:
    outcome = await _tool(_echo).call({"session_id": str(uuid4()), "count": 9, "text": "hunter2"}, READER)
    assert outcome.body["code"] == "UNKNOWN_ARGUMENT"
    assert outcome.body["hint"] == "Arguments of example: session_id, count, keys, at."
    assert "hunter2" not in outcome.text


async def test_a_missing_scope_is_refused_before_the_handler_runs() -> None:
    ran = []

    async def handler(*_: Any) -> None:
        ran.append(True)

    stranger = Caller(uuid4(), "x", frozenset({"session:input"}))
    outcome = await _tool(handler).call({"session_id": str(uuid4())}, stranger)
    assert outcome.body["code"] == "SCOPE_MISSING"
    by_arguments = _tool(handler, scopes_for=lambda arguments: ("session:kill",) if arguments.count > 1 else ())
    outcome = await by_arguments.call({"session_id": str(uuid4()), "count": 2}, READER)
    assert "session:kill" in outcome.body["error"]
    assert not ran


async def test_an_error_of_the_service_passes_and_any_other_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(*_: Any) -> None:
        raise errors.SessionNotFound("s-1")

    async def fail(*_: Any) -> None:
        raise RuntimeError("hunter2")

    refused = await _tool(refuse).call({"session_id": str(uuid4())}, READER)
    assert refused.body == {
        "error": "Session s-1 not found",
        "code": "SESSION_NOT_FOUND",
        "hint": "list_sessions shows the sessions of your project.",
        "retryable": False,
    }
    failed = await _tool(fail).call({"session_id": str(uuid4())}, READER)
    assert (failed.is_error, failed.body["code"]) == (True, "CONTROLLER_ACTION_FAILED")
    assert "hunter2" not in failed.text
    assert "tool example failed" in caplog.text


async def test_a_result_that_does_not_fit_its_model_is_our_error() -> None:
    async def wrong(*_: Any) -> dict[str, Any]:
        return {"count": "many"}

    outcome = await _tool(wrong).call({"session_id": str(uuid4())}, READER)
    assert outcome.body["code"] == "CONTROLLER_ACTION_FAILED"


def test_schemas_have_no_references_and_no_generated_titles() -> None:
    tool = _tool(_echo)
    for schema in (tool.input_schema, tool.output_schema):
        assert "$ref" not in json.dumps(schema)
        assert '"title"' not in json.dumps(schema)
    assert tool.input_schema["additionalProperties"] is False
    assert tool.codes == tuple(sorted({"SESSION_NOT_FOUND", *errors.InputRefused.HINTS}))
    assert set(COMMON_CODES).isdisjoint(tool.codes)


async def test_a_token_cannot_have_more_calls_at_once_than_it_may_and_others_go_on(settings: Any) -> None:
    settings.MAX_CALLS_PER_TOKEN = 2
    goes_on = asyncio.Event()

    async def waits(arguments: _Input, caller: Caller) -> dict[str, Any]:
        await goes_on.wait()
        return await _echo(arguments, caller)

    tool, arguments = _tool(waits), {"session_id": str(uuid4())}
    greedy, other = (Caller(uuid4(), "token:x", frozenset({"session:read"}), token_id=uuid4()) for _ in range(2))
    waiting = [asyncio.create_task(tool.call(arguments, caller)) for caller in (greedy, greedy, other)]
    await asyncio.sleep(0)
    refused = await tool.call(arguments, greedy)
    assert (refused.body["code"], refused.body["retry_after_seconds"]) == ("RATE_LIMITED", 1)
    goes_on.set()
    assert [outcome.is_error for outcome in await asyncio.gather(*waiting)] == [False] * 3
    assert not (await tool.call(arguments, greedy)).is_error
