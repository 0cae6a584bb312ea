"""A run has its tools and no others, on its own hosts, and each call under an id of its own."""

from typing import Any
from uuid import uuid4

import pytest

from agent.llm.conversation import Call
from agent.runs import toolbox
from agent.runs.toolbox import FINISH, FINISH_TOOL, Toolbox
from projects.models import CommandSession, Controller, Project
from projects.storage.access import in_database
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)
_START, _TYPE = "start_interactive_command", "send_command_input"


def _toolbox(project_id: Any = None, *controllers: str, output_bytes: int = 500) -> Toolbox:
    return Toolbox(uuid4(), project_id or uuid4(), controllers, output_bytes)


async def _code(own: Toolbox, name: str, arguments: dict[str, Any] | None) -> str:
    """The code of the refusal of a call; all calls of these tests are refused."""
    outcome = await own.carry_out(Call("1", name, arguments), step_number=1, index=0)
    assert outcome.is_error
    return str(outcome.body["code"])


def _two_hosts() -> tuple[Controller, Controller]:
    """Hosts of one project that are both away."""
    project = Project.objects.create(name="shop")
    return make_controller("web1", project=project), make_controller("web2", project=project)


async def test_a_bound_run_starts_nothing_on_another_host() -> None:
    web1, _web2 = await in_database(_two_hosts)
    own = _toolbox(web1.project_id, "web1")
    for tool in (_START, "execute_command", "start_command"):
        wanted = {"command": "id", "controller": "web2"}
        assert await _code(own, tool, wanted) == "CONTROLLER_NOT_OF_RUN"
    assert not await in_database(CommandSession.objects.exists)


@pytest.mark.parametrize("unnamed", [{}, {"controller": None}])
async def test_a_run_that_is_bound_to_one_host_need_not_name_it(unnamed: dict[str, Any]) -> None:
    web1, _web2 = await in_database(_two_hosts)
    started = {"command": "id", **unnamed}
    assert await _code(_toolbox(web1.project_id), _START, started) == "CONTROLLER_AMBIGUOUS"
    bound = _toolbox(web1.project_id, "web1")
    assert await _code(bound, _START, started) == "CONTROLLER_OFFLINE"
    assert started == {"command": "id", **unnamed}


async def test_a_run_that_is_bound_to_several_hosts_names_one_of_them() -> None:
    web1, _web2 = await in_database(_two_hosts)
    own = _toolbox(web1.project_id, "web1", "db1")
    outcome = await own.carry_out(Call("1", _START, {"command": "id"}), step_number=1, index=0)
    assert outcome.body["code"] == "CONTROLLER_NOT_OF_RUN"
    assert "web1, db1" in outcome.body["hint"]


@pytest.mark.parametrize(("tool", "handle"), [(_TYPE, "session_id"), ("write_input", "sessionId")])
async def test_a_bound_run_uses_only_sessions_of_its_own_results(tool: str, handle: str) -> None:
    def ended() -> CommandSession:
        return make_session(_two_hosts()[1], state="EXITED", kind="background")

    session = await in_database(ended)
    typed = {handle: str(session.id), "input": "x", "input_text": "x"}
    arguments = {name: typed[name] for name in _arguments_of(tool)}
    own = _toolbox(session.project_id, "web1")
    own.remember({"session_id": str(uuid4()), "sessionId": None, "token": ""})
    assert await _code(own, tool, arguments) == "SESSION_NOT_OF_RUN"
    own.remember({handle: session.id})
    assert await _code(own, tool, arguments) != "SESSION_NOT_OF_RUN"
    assert await _code(_toolbox(session.project_id), tool, arguments) != "SESSION_NOT_OF_RUN"


def _arguments_of(tool: str) -> tuple[str, str]:
    return ("session_id", "input_text") if tool == _TYPE else ("sessionId", "input")


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        (_START, None, "MALFORMED_ARGUMENTS"),
        (_START, {"command": "\ud800"}, "MALFORMED_ARGUMENTS"),
        (FINISH, {"success": "perhaps"}, "INVALID_ARGUMENT"),
        (_START, {"command": 3}, "INVALID_ARGUMENT"),
        ("search_session_output", {"pattern": "key"}, "UNKNOWN_TOOL"),
        ("start_session_monitor", {}, "UNKNOWN_TOOL"),
    ],
)
async def test_a_call_that_cannot_be_made_is_put_before_nobody(
    name: str, arguments: dict[str, Any] | None, code: str
) -> None:
    own = _toolbox()
    assert own.refuses(Call("1", name, arguments))
    assert await _code(own, name, arguments) == code


def test_a_call_that_can_be_made_may_be_put_before_a_person() -> None:
    assert not _toolbox().refuses(Call("1", _START, {"command": "id"}))


def test_a_call_has_one_id_however_often_it_is_made() -> None:
    own, other = _toolbox(), _toolbox()
    places = [(1, 0), (1, 1), (2, 0), (11, 0), (1, 10)]
    ids = {own.request_id(*place) for place in places}
    assert len(ids) == len(places)
    assert ids == {own.request_id(*place) for place in places}
    assert ids.isdisjoint(other.request_id(*place) for place in places)


def test_a_model_is_not_offered_what_the_run_fills_in() -> None:
    offered = {tool.name: tool for tool in _toolbox().offered()}
    assert offered[FINISH] == FINISH_TOOL
    properties = offered["execute_command"].schema["properties"]
    assert "command" in properties
    assert properties.keys().isdisjoint({"request_id", "requestId", "max_output_bytes"})


@pytest.mark.parametrize(
    ("wanted", "passed_on"), [(None, 500), (499, 499), (501, 500), ("many", "many")]
)
def test_a_call_shows_no_more_than_the_limit_of_the_run(wanted: Any, passed_on: Any) -> None:
    assert toolbox._at_most(wanted, 500) == passed_on


async def test_a_run_knows_the_session_of_a_result_before_the_next_call() -> None:
    session = await in_database(lambda: make_session(_two_hosts()[0], state="EXITED"))
    own = _toolbox(session.project_id)
    call = Call("1", "read_session_output", {"session_id": str(session.id)})
    assert not (await own.carry_out(call, step_number=1, index=0)).is_error
    assert str(session.id) in own.sessions


@pytest.mark.parametrize("limit", [1, 1023, 2**31 - 1])
@pytest.mark.parametrize("tool", ["execute_command", _START, _TYPE])
async def test_a_limit_of_output_that_no_tool_takes_is_no_error_of_a_call(
    limit: int, tool: str
) -> None:
    host = await in_database(make_controller)
    session = await in_database(make_session, host, stdout_next_offset=0)
    own = _toolbox(host.project_id, output_bytes=limit)
    own.sessions.add(str(session.id))
    typed = {"session_id": str(session.id), "input_text": "x"}
    given = typed if tool == _TYPE else {"command": "id"}
    assert await _code(own, tool, given) == "CONTROLLER_OFFLINE"
