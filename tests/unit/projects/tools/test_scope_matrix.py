"""Every tool, with every scope alone and without each it needs, on the own project and on another
one's things.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.session_state import SessionState
from projects.accounts.authentication import ADMIN_SCOPE, SCOPES, Caller
from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession, Monitor
from projects.storage.access import in_database
from projects.tools.registry import ALL_TOOLS, tool_named
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

START = frozenset({"session:start", "shell:any"})
NO_SESSION = {SessionNotFound.code, "SESSION_NOT_FOUND"}

# What each call needs, said once more than in the tools themselves. The arguments are made of the
# id of a session (or monitor).
CALLS: dict[str, tuple[str, Callable[[str], dict[str, Any]], frozenset[str]]] = {
    "execute": ("execute_command", lambda _: {"command": "true"}, START),
    "start interactive": (
        "start_interactive_command",
        lambda _: {"command": "true", "wait_seconds": 0},
        START,
    ),
    "type": (
        "send_command_input",
        lambda s: {"session_id": s, "input_text": "x", "wait_seconds": 0},
        frozenset({"session:input"}),
    ),
    "poll": (
        "send_command_input",
        lambda s: {"session_id": s, "wait_seconds": 0},
        frozenset({"session:read"}),
    ),
    "end": (
        "send_command_input",
        lambda s: {"session_id": s, "terminate": True, "wait_seconds": 0},
        frozenset({"session:kill"}),
    ),
    "name a secret": (
        "send_command_input",
        lambda s: {"session_id": s, "secret": "sudo", "wait_seconds": 0},
        frozenset({"session:input", "secret:use"}),
    ),
    "start background": ("start_command", lambda _: {"command": "true"}, START),
    "read background": ("read_output", lambda s: {"sessionId": s}, frozenset({"session:read"})),
    "write background": (
        "write_input",
        lambda s: {"sessionId": s, "input": "x"},
        frozenset({"session:input"}),
    ),
    "stop background": ("stop_command", lambda s: {"sessionId": s}, frozenset({"session:kill"})),
    "start job": ("run_command", lambda _: {"command": "true"}, START),
    "query job": ("query_command_status", lambda s: {"token": s}, frozenset({"session:read"})),
    "start monitor": (
        "start_session_monitor",
        lambda _: {"session_id": str(uuid4()), "session_type": "file", "log_file": "/tmp/x"},
        frozenset({"monitor:read"}),
    ),
    "read monitor": (
        "get_session_updates",
        lambda s: {"session_id": s},
        frozenset({"monitor:read"}),
    ),
    "list monitors": ("list_session_monitors", lambda _s: {}, frozenset({"monitor:read"})),
    "stop monitor": (
        "stop_session_monitor",
        lambda s: {"session_id": s, "save_log": True},
        frozenset({"monitor:read"}),
    ),
    "read": ("read_session_output", lambda s: {"session_id": s}, frozenset({"session:read"})),
    "search": (
        "search_session_output",
        lambda s: {"session_id": s, "pattern": "x"},
        frozenset({"session:read", "monitor:read"}),
    ),
    "get": ("get_session", lambda s: {"session_id": s}, frozenset({"session:read"})),
    "list sessions": ("list_sessions", lambda _: {}, frozenset({"session:read"})),
    "list controllers": ("list_controllers", lambda _: {}, frozenset({"session:read"})),
    "resize": (
        "resize_session",
        lambda s: {"session_id": s, "rows": 10, "cols": 10},
        frozenset({"session:input"}),
    ),
}


def test_the_table_has_every_tool() -> None:
    assert {tool for tool, _, _ in CALLS.values()} == {tool.name for tool in ALL_TOOLS}


def _world() -> tuple[UUID, UUID, dict[str, str]]:
    """A project, another one, and the id of a thing of the first for each kind of call.

    Its host is away: nothing waits for it.
    """
    host, other = make_controller("host"), make_controller("elsewhere")
    kinds = CommandSession.Kind
    # Nobody waits for the end of what has ended.
    states = {kinds.BACKGROUND: SessionState.EXITED}
    ids = {
        kind.value: str(make_session(host, states.get(kind, SessionState.RUNNING), kind=kind).id)
        for kind in kinds
    }
    monitor = Monitor.objects.create(
        session_id=uuid4(),
        project=host.project,
        controller=host,
        log_file="/tmp/x",
        session_type="file",
    )
    return host.project_id, other.project_id, {**ids, "monitor": str(monitor.session_id)}


def _id_for(call: str, ids: dict[str, str]) -> str:
    kind = next((kind for kind in ("background", "job", "monitor") if kind in call), "interactive")
    return ids[kind]


async def _code(call: str, scopes: frozenset[str], project_id: UUID, thing: str) -> dict[str, Any]:
    name, arguments, _ = CALLS[call]
    outcome = await tool_named(name).call(arguments(thing), Caller(project_id, "token:x", scopes))
    return outcome.body if outcome.is_error else {"code": ""}


@pytest.mark.parametrize("call", CALLS)
async def test_a_call_needs_all_of_its_scopes_and_no_other(call: str) -> None:
    own, _, ids = await in_database(_world)
    thing, needed = _id_for(call, ids), CALLS[call][2]
    for scope in SCOPES:
        is_enough = scope == ADMIN_SCOPE or needed <= {scope}
        assert (
            (await _code(call, frozenset({scope}), own, thing))["code"] != "SCOPE_MISSING"
        ) == is_enough, scope
    for scope in needed:
        refused = await _code(call, frozenset(SCOPES) - {scope, ADMIN_SCOPE}, own, thing)
        assert (refused["code"], scope in refused["error"]) == ("SCOPE_MISSING", True)
    assert (await _code(call, needed, own, thing))["code"] != "SCOPE_MISSING"
    assert (await _code(call, frozenset(), own, thing))["code"] == "SCOPE_MISSING"


@pytest.mark.parametrize(
    "call",
    [name for name, (_, arguments, _) in CALLS.items() if "q" in str(arguments("q").values())],
)
async def test_another_projects_thing_is_answered_as_one_that_is_not_there(call: str) -> None:
    _, other, ids = await in_database(_world)
    thing, nothing = _id_for(call, ids), str(uuid4())
    theirs = await _code(call, frozenset({ADMIN_SCOPE}), other, thing)
    missing = await _code(call, frozenset({ADMIN_SCOPE}), other, nothing)
    assert str(theirs).replace(thing, "?") == str(missing).replace(nothing, "?")
    # A job's status says so in its result; everything else is refused.
    assert theirs["code"] in NO_SESSION or call == "query job"
