"""The one way to call a tool: whatever goes wrong is the one error body, and no value is repeated
in it.
"""

import json
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID, uuid4

import pytest
from pydantic import AwareDatetime, Field

from projects.accounts.authentication import SCOPES, Caller
from projects.errors.access import APPROVAL_ERRORS
from projects.errors.base import COMMON_CODES
from projects.errors.inputs import InputRefused
from projects.errors.sessions import SessionNotFound
from projects.errors.shown_tools import TOOL_NAMES, showing
from projects.output.result import Result
from projects.tools.base import Tool, ToolInput
from projects.tools.registry import tool_named

READER = Caller(uuid4(), "token:reader", frozenset({"session:read"}))


class _Input(ToolInput):
    session_id: UUID
    count: Annotated[int, Field(ge=1, le=3)] = 1
    keys: tuple[str, ...] = ()
    at: AwareDatetime | None = None


class _Output(Result):
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
        "errors": (SessionNotFound, InputRefused),
    }
    return Tool(**{**fields, **changes})


class _More(_Output):
    label: str


async def _echo(arguments: _Input, caller: Caller) -> _Output:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    return _More(count=arguments.count, at=at, label=caller.label)


async def test_a_result_has_its_models_fields_and_is_the_same_as_json_text() -> None:
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
        ({"session_id": str(uuid4()), "keys": [7]}, "keys: each value in it must be a text"),
        ({"session_id": str(uuid4()), "at": "hunter2"}, "at: must be a date and time with zone"),
        ({"session_id": str(uuid4()), "at": True}, "at: must be a date and time with zone"),
        (
            {"session_id": str(uuid4()), "at": "2026-11-20T12:00"},
            "at: must be a date and time with",
        ),
    ],
)
async def test_a_wrong_argument_is_named_and_its_value_is_not_repeated(
    arguments: dict[str, Any], named: str
) -> None:
    outcome = await _tool(_echo).call(arguments, READER)
    assert (outcome.is_error, outcome.body["code"]) == (True, "INVALID_ARGUMENT")
    assert named in outcome.body["error"]
    assert "hunter2" not in outcome.text


async def test_an_unknown_argument_names_the_known_ones() -> None:
    outcome = await _tool(_echo).call(
        {"session_id": str(uuid4()), "count": 9, "text": "hunter2"}, READER
    )
    assert outcome.body["code"] == "UNKNOWN_ARGUMENT"
    assert outcome.body["hint"] == "Arguments of example: session_id, count, keys, at."
    assert "hunter2" not in outcome.text


async def test_an_error_quotes_few_unknown_arguments_and_no_long_ones() -> None:
    outcome = await _tool(_echo).call({f"{number}{'x' * 900}": 1 for number in range(900)}, READER)
    assert outcome.body["code"] == "UNKNOWN_ARGUMENT"
    assert len(outcome.body["error"]) < 1000


async def test_a_missing_scope_is_refused_before_the_handler_runs() -> None:
    ran = []

    async def handler(*_: Any) -> None:
        ran.append(True)

    stranger = Caller(uuid4(), "x", frozenset({"session:input"}))
    outcome = await _tool(handler).call({"session_id": str(uuid4())}, stranger)
    assert outcome.body["code"] == "SCOPE_MISSING"
    by_arguments = _tool(
        handler, scopes_for=lambda arguments: ("session:kill",) if arguments.count > 1 else ()
    )
    outcome = await by_arguments.call({"session_id": str(uuid4()), "count": 2}, READER)
    assert "session:kill" in outcome.body["error"]
    assert not ran


async def test_an_error_of_the_service_passes_and_any_other_says_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def refuse(*_: Any) -> None:
        raise SessionNotFound("s-1")

    async def fail(*_: Any) -> None:
        raise RuntimeError("hunter2")

    refused = await _tool(refuse).call({"session_id": str(uuid4())}, READER)
    assert refused.body == {
        "error": "Session s-1 not found",
        "code": "SESSION_NOT_FOUND",
        "hint": (
            "Check the id: your project has no session of this id. list_sessions shows the "
            "sessions of your project."
        ),
        "retryable": False,
    }
    failed = await _tool(fail).call({"session_id": str(uuid4())}, READER)
    assert (failed.is_error, failed.body["code"]) == (True, "CONTROLLER_ACTION_FAILED")
    assert "hunter2" not in failed.text
    assert "tool example failed" in caplog.text


async def test_what_others_chose_acts_on_no_terminal_unless_raw_is_asked_for() -> None:
    class RawInput(_Input):
        view: Literal["text", "raw"] = "text"

    class Shown(Result):
        stdout: str
        command: str

    async def show(*_: Any) -> Shown:
        return Shown(stdout="\x1b[1m", command="echo \x1b]52;c;eA==\x07\u202e")

    async def refuse(*_: Any) -> None:
        raise SessionNotFound("\x9b31m")

    tool = _tool(show, input_model=RawInput, output_model=Shown)
    command = "echo \\u{001b}]52;c;eA==\\u{0007}\\u{202e}"
    assert (await tool.call({"session_id": str(uuid4())}, READER)).body == {
        "stdout": "\\u{001b}[1m",
        "command": command,
    }
    raw = await tool.call({"session_id": str(uuid4()), "view": "raw"}, READER)
    assert raw.body == {"stdout": "\x1b[1m", "command": command}
    refused = await _tool(refuse).call({"session_id": str(uuid4())}, READER)
    assert "\x9b" not in refused.body["error"]


async def test_a_call_without_memory_can_be_repeated() -> None:
    async def exhaust(*_: Any) -> None:
        raise MemoryError

    outcome = await _tool(exhaust).call({"session_id": str(uuid4())}, READER)
    assert (outcome.body["code"], outcome.body["retryable"]) == ("STORAGE_UNAVAILABLE", True)


async def test_a_result_that_does_not_fit_its_model_is_our_error() -> None:
    async def wrong(*_: Any) -> _Output:
        return _Output.model_validate({"count": "many"})

    outcome = await _tool(wrong).call({"session_id": str(uuid4())}, READER)
    assert outcome.body["code"] == "CONTROLLER_ACTION_FAILED"


def test_schemas_have_no_references_and_no_generated_titles() -> None:
    tool = _tool(_echo)
    for schema in (tool.input_schema, tool.output_schema):
        assert "$ref" not in json.dumps(schema)
        assert '"title"' not in json.dumps(schema)
    assert tool.input_schema["additionalProperties"] is False
    # The judge does not know this tool, so its calls may be held.
    held = {kind.code for kind in APPROVAL_ERRORS}
    assert tool.codes == tuple(sorted({"SESSION_NOT_FOUND", *InputRefused.HINTS, *held}))
    assert set(COMMON_CODES).isdisjoint(tool.codes)


async def test_a_wrong_value_is_refused_in_our_words_with_the_arguments_hint() -> None:
    caller = Caller(uuid4(), "x", frozenset(SCOPES))
    with showing(TOOL_NAMES):
        body = (
            await tool_named("execute_command").call(
                {"command": "x", "timeout_seconds": 100}, caller
            )
        ).body
    assert body["error"] == "invalid arguments: timeout_seconds: must be at most 45.0"
    assert "start_command" in body["hint"]
    with showing({"execute_command"}):
        body = (await tool_named("execute_command").call({"timeout_seconds": "soon"}, caller)).body
    assert (
        body["error"]
        == "invalid arguments: command: is required; timeout_seconds: must be a number"
    )
    assert "start_command" not in body["hint"]


async def test_the_texts_of_several_wrong_arguments_are_sentences_each() -> None:
    outcome = await tool_named("start_session_monitor").call(
        {}, Caller(uuid4(), "x", frozenset(SCOPES))
    )
    assert outcome.body["hint"] == (
        "Correct the argument and call again. "
        "session_id: Unique identifier for the session (UUID4 recommended). "
        "session_type: Type of session being monitored. "
        "log_file: Absolute path to the session output log file."
    )


async def test_an_error_code_that_the_tool_does_not_declare_fails_a_test() -> None:
    async def refuse(*_: Any) -> Any:
        raise SessionNotFound("s-1")

    with pytest.raises(AssertionError, match="declares no error code SESSION_NOT_FOUND"):
        await _tool(refuse, errors=()).call({"session_id": str(uuid4())}, READER)
