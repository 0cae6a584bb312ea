"""Every argument of every tool with values that no caller should send, and at its bounds.

Each call is refused with a declared code, or it works. None of them fails the server, and no
refusal repeats a value or names an argument that the tool does not have.
"""

import math
import re
from typing import Any, Final
from uuid import uuid4

import pytest

from controller_client.protocol.session_state import SessionState
from projects.accounts.authentication import SCOPES, Caller
from projects.errors.base import COMMON_CODES
from projects.models import CommandSession, Controller, Monitor
from projects.policy.arguments import MAX_COLS, MAX_ROWS
from projects.storage.access import in_database
from projects.tools.base import Tool, ToolOutcome
from projects.tools.registry import ALL_TOOLS, tool_named
from tests.support.rows import make_controller, make_session

_SPOKEN: Final = "hunter2"
ODD: Final[tuple[Any, ...]] = (
    "", "\0", "\ud800", "\x1b]0;x\x07{0}%s", _SPOKEN, "9" * 5000, "x" * 70_000,
    -1, 2**63, 10**400, math.nan, 1e308, 0.5, None, True, [], {}, [None], ["\ud800"], {"": ""},
    {"A": "\ud800"}, {_SPOKEN: [_SPOKEN]}, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
)  # fmt: skip
_WAITS: Final = {"wait_seconds", "timeout"}
_NAMES_A_THING: Final = {"controller", "signal", "token", "log_file", "session_id"}
"""Arguments whose value is no secret: an error may name the thing that was not found."""
_NUMBERS: Final = {"integer", "number"}


def _world() -> tuple[Controller, dict[str, Any]]:
    """A host that is away, and arguments that make a call of each tool a right one."""
    host = make_controller()
    ended = make_session(host, SessionState.EXITED, kind=CommandSession.Kind.BACKGROUND)
    monitor = Monitor.objects.create(
        session_id=uuid4(), project=host.project, controller=host, log_file="/x"
    )
    return host, {
        "session_id": str(make_session(host, io_mode="pty").id),
        "sessionId": str(ended.id),
        "token": str(ended.id),
        "monitor": str(monitor.session_id),
        "command": "true",
        "pattern": "x",
        "session_type": "file",
        "log_file": "/x",
        "input": "",
        "rows": 5,
        "cols": 5,
    }


def _right(tool: Tool[Any], given: dict[str, Any]) -> dict[str, Any]:
    chosen = {name: given[name] for name in tool.input_schema.get("required", [])}
    if tool.name in {"get_session_updates", "stop_session_monitor"}:
        chosen["session_id"] = given["monitor"]
    if tool.name == "start_session_monitor":
        chosen["session_id"] = str(uuid4())
    if tool.name in {"send_command_input", "start_interactive_command"}:
        chosen["wait_seconds"] = 0
    return chosen


def _faults(tool: Tool[Any], name: str, outcome: ToolOutcome) -> list[str]:
    """What is wrong with the answer to a call whose argument ``name`` was odd."""
    text = outcome.text
    if not outcome.is_error:
        return []
    body = outcome.body
    faults = [] if body["code"] in {*tool.codes, *COMMON_CODES} else ["undeclared"]
    faults += ["failed"] if body["code"] == "CONTROLLER_ACTION_FAILED" else []
    faults += ["speechless"] if not (body["error"] and body["hint"]) else []
    faults += ["repeats the value"] if _SPOKEN in text and name not in _NAMES_A_THING else []
    faults += ["long"] if len(text) > 4000 else []
    if body["code"] == "INVALID_ARGUMENT":
        problems = body["error"].removeprefix("invalid arguments: ").split("; ")
        named = {part for problem in problems for part in problem.partition(":")[0].split(", ")}
        faults += [f"names {other}" for other in named - set(tool.argument_names)]
        faults += ["in words of pydantic"] if re.search(r"Input should|Unable to", text) else []
    return faults


@pytest.mark.django_db(transaction=True)
async def test_an_odd_argument_is_refused_in_our_words_and_fails_nothing() -> None:
    host, given = await in_database(_world)
    caller = Caller(host.project_id, "token:x", frozenset(SCOPES))
    found = []
    for tool in ALL_TOOLS:
        right = _right(tool, given)
        for name in tool.argument_names:
            for odd in ODD:
                if name in _WAITS and odd in (True, 0.5):
                    continue
                outcome = await tool.call({**right, name: odd}, caller)
                found += [
                    (tool.name, name, repr(odd)[:40], fault, outcome.text[:200])
                    for fault in _faults(tool, name, outcome)
                ]
    assert found == []


def _bounded() -> list[tuple[Tool[Any], str, dict[str, Any]]]:
    """The arguments with bounds in their schema: a number, or None beside a number."""
    return [
        (tool, name, part)
        for tool in ALL_TOOLS
        for name, schema in tool.input_schema["properties"].items()
        for part in schema.get("anyOf", [schema])
        if {"minimum", "maximum"} & part.keys()
    ]


@pytest.mark.parametrize(("tool", "name", "part"), _bounded(), ids=lambda value: str(value)[:30])
def test_the_bounds_of_a_number_are_those_of_its_schema(
    tool: Tool[Any], name: str, part: dict[str, Any]
) -> None:
    stand_ins = {"session_id": str(uuid4()), "sessionId": str(uuid4())}
    required = tool.input_schema.get("required", [])
    right = {key: stand_ins.get(key, "x") for key in required}
    step = 1 if part["type"] == "integer" else 1e-6
    low, high = part["minimum"], part["maximum"]
    assert [tool.accepts({**right, name: value}) for value in (low, high)] == [True, True]
    assert [tool.accepts({**right, name: value}) for value in (low - step, high + step)] == [
        False,
        False,
    ]
    assert low <= (tool.input_schema["properties"][name].get("default") or low) <= high


def test_every_number_has_its_bounds_or_its_own_check() -> None:
    checked_by_the_service = {"rows", "cols", "lifetime_seconds", "lifetime"}
    bounded = {(tool.name, name) for tool, name, _ in _bounded()}
    numbers = {
        (tool.name, name)
        for tool in ALL_TOOLS
        for name, schema in tool.input_schema["properties"].items()
        for part in schema.get("anyOf", [schema])
        if part.get("type") in _NUMBERS
    }
    assert {name for _, name in numbers - bounded} == checked_by_the_service
    assert bounded <= numbers


@pytest.mark.parametrize(
    ("tool", "name", "values"),
    [
        ("start_interactive_command", "rows", (1, MAX_ROWS)),
        ("start_interactive_command", "cols", (1, MAX_COLS)),
        ("start_interactive_command", "lifetime_seconds", (1, 300)),
        ("start_command", "lifetime", (1000, 604_800_000)),
        ("resize_session", "rows", (1, MAX_ROWS)),
        ("resize_session", "cols", (1, MAX_COLS)),
    ],
)
@pytest.mark.django_db(transaction=True)
async def test_a_size_or_lifetime_is_taken_up_to_its_bounds_and_no_further(
    tool: str, name: str, values: tuple[int, int]
) -> None:
    host, given = await in_database(_world)
    caller = Caller(host.project_id, "token:x", frozenset(SCOPES))
    wanted = tool_named(tool)
    right = _right(wanted, given)
    low, high = values
    for value, is_taken in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        body = (await wanted.call({**right, name: value}, caller)).body
        if is_taken:
            assert body["code"] == "CONTROLLER_OFFLINE", value
        else:
            assert body["code"] in {"INVALID_ARGUMENT", "LIFETIME_TOO_LONG"}, value
        if body["code"] == "INVALID_ARGUMENT":
            assert body["error"].startswith(f"invalid arguments: {name}: must be between")


def _times() -> list[tuple[str, str, str]]:
    """The arguments that are times, with the unit of each."""
    words = (("Milliseconds", "ms"), ("Seconds", "s"), ("How long", "s"))
    found = [
        (tool.name, name, unit)
        for tool in ALL_TOOLS
        for name, schema in tool.input_schema["properties"].items()
        for word, unit in words
        if schema.get("description", "").startswith(word)
        and {part.get("type") for part in schema.get("anyOf", [schema])} & _NUMBERS
    ]
    names = {name for _, name, _ in found}
    assert names >= {"lifetime", "lifetime_seconds", "timeout", "wait_seconds"}
    return found


@pytest.mark.parametrize(("tool", "name", "unit"), _times())
@pytest.mark.django_db(transaction=True)
async def test_a_time_is_refused_in_the_unit_of_its_argument(
    tool: str, name: str, unit: str
) -> None:
    host, given = await in_database(_world)
    caller = Caller(host.project_id, "token:x", frozenset(SCOPES))
    wanted = tool_named(tool)
    for value in (-1, 10**12):
        body = (await wanted.call({**_right(wanted, given), name: value}, caller)).body
        assert body["code"] in {"INVALID_ARGUMENT", "LIFETIME_TOO_LONG"}
        spoken = re.findall(r"(?<![\w.])(\d+(?:\.\d+)?)(?: (m?s)\b)?", body["error"])
        assert {said for _, said in spoken if said} <= {unit}
        right = {**_right(wanted, given), name: float(spoken[0 if value < 0 else -1][0])}
        assert wanted.accepts(right)
        if name not in _WAITS:
            answer = (await wanted.call(right, caller)).body
            assert answer.get("code") != "INVALID_ARGUMENT"
