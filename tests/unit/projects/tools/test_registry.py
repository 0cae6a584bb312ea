"""What holds for every tool: scopes, other projects, words that steer a model."""

from typing import Any, get_type_hints
from uuid import uuid4

import pytest

from projects.accounts.authentication import SCOPES, Caller
from projects.errors.calls import UnknownTool
from projects.models import Project
from projects.storage.access import in_database
from projects.tools.base import Tool
from projects.tools.registry import ALL_TOOLS, tool_named

_STARTING = {"start_interactive_command", "execute_command", "start_command", "run_command"}
_ACTING = {*_STARTING, "send_command_input", "resize_session", "write_input", "stop_command"}
# What these do a second time is refused, or found done.
_BY_THEIR_OWN_ID = {"start_session_monitor", "stop_session_monitor"}
# Their request ids repeat a slice; they do nothing.
_REPEATABLE = {
    *_ACTING,
    "read_output",
    "get_session_updates",
    "get_session",
    "start_session_monitor",
    "stop_session_monitor",
}
_SESSION = str(uuid4())
# Arguments of a call, and the scopes it needs.
_CALLS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("start_interactive_command", {"command": "true"}, {"session:start", "shell:any"}),
    ("send_command_input", {"session_id": _SESSION, "input_text": "x"}, {"session:input"}),
    ("send_command_input", {"session_id": _SESSION, "keys": ["enter"]}, {"session:input"}),
    (
        "send_command_input",
        {"session_id": _SESSION, "secret": "sudo"},
        {"session:input", "secret:use"},
    ),
    ("send_command_input", {"session_id": _SESSION, "ask_person": "PIN"}, {"session:input"}),
    ("send_command_input", {"session_id": _SESSION, "terminate": True}, {"session:kill"}),
    ("send_command_input", {"session_id": _SESSION}, {"session:read"}),
    ("read_session_output", {"session_id": _SESSION}, {"session:read"}),
    ("get_session", {"session_id": _SESSION}, {"session:read"}),
    ("list_sessions", {}, {"session:read"}),
    ("list_controllers", {}, {"session:read"}),
    ("resize_session", {"session_id": _SESSION, "rows": 5, "cols": 5}, {"session:input"}),
    ("execute_command", {"command": "true"}, {"session:start", "shell:any"}),
    ("start_command", {"command": "true"}, {"session:start", "shell:any"}),
    ("run_command", {"command": "true"}, {"session:start", "shell:any"}),
    ("read_output", {"sessionId": _SESSION}, {"session:read"}),
    ("write_input", {"sessionId": _SESSION, "input": "x"}, {"session:input"}),
    ("stop_command", {"sessionId": _SESSION}, {"session:kill"}),
    ("query_command_status", {"token": _SESSION}, {"session:read"}),
    (
        "start_session_monitor",
        {"session_id": _SESSION, "session_type": "file", "log_file": "/a"},
        {"monitor:read"},
    ),
    ("get_session_updates", {"session_id": _SESSION}, {"monitor:read"}),
    ("stop_session_monitor", {"session_id": _SESSION}, {"monitor:read"}),
    ("list_session_monitors", {}, {"monitor:read"}),
    ("search_session_output", {"pattern": "x"}, {"session:read", "monitor:read"}),
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("name", "arguments", "needed"), _CALLS, ids=lambda value: str(value)[:40])
async def test_a_call_needs_exactly_its_scopes(
    name: str, arguments: dict[str, Any], needed: set[str]
) -> None:
    project = await in_database(Project.objects.create, name="p")
    tool = tool_named(name)
    assert needed <= set(tool.scopes)
    for missing in needed:
        outcome = await tool.call(
            arguments, Caller(project.id, "x", frozenset(SCOPES) - {missing, "admin:*"})
        )
        assert outcome.body.get("code") == "SCOPE_MISSING"
    for scopes in (frozenset(needed), frozenset({"admin:*"})):
        outcome = await tool.call(arguments, Caller(project.id, "x", scopes))
        assert outcome.body.get("code") != "SCOPE_MISSING"


def test_every_call_that_needs_a_scope_of_its_own_is_covered() -> None:
    for tool in ALL_TOOLS:
        covered: set[str] = set().union(
            *(needed for name, _, needed in _CALLS if name == tool.name)
        )
        assert covered == set(tool.scopes), tool.name


def test_an_unknown_tool_names_the_known_ones() -> None:
    with pytest.raises(UnknownTool) as unknown:
        tool_named("execute")
    assert "start_interactive_command" in unknown.value.hint


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_tells_a_model_how_to_use_it(tool: Tool[Any]) -> None:
    assert tool.description.endswith(".")
    assert tool.guidance.endswith(".")
    described = tool.input_schema.get("properties", {})
    assert all("description" in schema for schema in described.values()), tool.name
    assert bool({"request_id", "requestId"} & set(described)) == (tool.name in _REPEATABLE)
    assert tool.is_read_only == (tool.name not in _ACTING | _BY_THEIR_OWN_ID)


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_a_handler_returns_the_model_that_its_tool_publishes(tool: Tool[Any]) -> None:
    assert issubclass(get_type_hints(tool.handler)["return"], tool.output_model)


@pytest.mark.requirement("S3.R5.1")
def test_the_two_required_tools_take_their_required_arguments() -> None:
    start, send = tool_named("start_interactive_command"), tool_named("send_command_input")
    assert start.input_schema["required"] == ["command"]
    assert send.input_schema["required"] == ["session_id"]
    assert send.input_schema["properties"]["input_text"]["type"] == "string"
