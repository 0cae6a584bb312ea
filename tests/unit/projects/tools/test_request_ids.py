"""``request_id`` of every tool that acts: a repeat does nothing twice, another call is refused."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.messages import Failure, FileChunk, ReadFile
from projects.accounts.authentication import SCOPES, Caller
from projects.models import (
    ActionRequest,
    CommandSession,
    Controller,
    ControllerCommand,
    Project,
)
from projects.monitors import start as monitor_starts
from projects.storage.access import in_database
from projects.tools.registry import ALL_TOOLS, tool_named
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

# The arguments of a call of each tool that acts, and what another call of it changes in them.
ACTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "start_interactive_command": (
        {"command": "cat", "wait_seconds": 5},
        [{"command": "cat "}, {"rows": 25}, {"cols": 80}, {"env": {"A": ""}}, {"cwd": "/"}],
    ),
    "start_command": ({"command": "cat"}, [{"command": "tac"}, {"lifetime": 5000}, {"cwd": "/"}]),
    "run_command": (
        {"command": "make"},
        [{"use_pty": True}, {"timeout": 31}, {"max_buffer_size": 1024}],
    ),
    "send_command_input": (
        {"session_id": "terminal", "input_text": "a\n", "wait_seconds": 5},
        [{"input_text": "a"}, {"keys": ["enter"]}, {"input_text": ""}, {"input_text": "\u0430\n"}],
    ),
    "write_input": ({"sessionId": "pipes", "input": "a\n"}, [{"input": "A\n"}, {"eof": True}]),
    "resize_session": ({"session_id": "terminal", "rows": 9, "cols": 9}, [{"rows": 10}]),
    "stop_command": ({"sessionId": "pipes", "signal": "SIGHUP"}, [{"signal": "SIGINT"}]),
    "start_session_monitor": (
        {"session_id": str(uuid4()), "session_type": "file", "log_file": "/a.log"},
        [{"log_file": "/b.log"}, {"start_at_end": True}, {"metadata": {"a": "b"}}],
    ),
    "stop_session_monitor": ({"session_id": "monitor", "save_log": True}, [{"save_log": False}]),
}
# Their ids only give the same answer again.
_READ: set[str] = {"read_output", "get_session_updates", "get_session"}
# Its repeats are tried where its program can end: tests/unit/projects/sessions/test_one_shot.py.
_TO_ITS_END: set[str] = {"execute_command"}


@pytest.fixture(autouse=True)
def empty_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log of the host is there and empty."""

    async def look(_host: UUID, question: ReadFile) -> FileChunk:
        return FileChunk(reply_to=question.id, identity="1:2")

    monkeypatch.setattr(monitor_starts, "read_file", look)


def _rows() -> tuple[int, ...]:
    """How many calls are on record, how many commands were sent, and how many sessions began."""
    kinds = (ActionRequest, ControllerCommand, CommandSession)
    return tuple(kind.objects.count() for kind in kinds)


def _caller(project_id: UUID) -> Caller:
    return Caller(project_id, "token:x", frozenset(SCOPES))


async def _call(caller: Caller, tool: str, arguments: dict[str, Any], asked: UUID) -> Any:
    name = "requestId" if "requestId" in tool_named(tool).argument_names else "request_id"
    return (await tool_named(tool).call({**arguments, name: str(asked)}, caller)).body


async def _things(controller: Controller, caller: Caller) -> dict[str, str]:
    terminal, pipes = [
        await in_database(
            lambda kind=kind, mode=mode: make_session(controller, kind=kind, io_mode=mode)
        )
        for kind, mode in (
            (CommandSession.Kind.INTERACTIVE, "pty"),
            (CommandSession.Kind.BACKGROUND, "pipe"),
        )
    ]
    monitor = str(uuid4())
    arguments = {"session_id": monitor, "session_type": "file", "log_file": "/c.log"}
    await tool_named("start_session_monitor").call(arguments, caller)
    return {"terminal": str(terminal.id), "pipes": str(pipes.id), "monitor": monitor}


def test_every_tool_with_a_request_id_is_here() -> None:
    with_id = {
        tool.name for tool in ALL_TOOLS if {"request_id", "requestId"} & {*tool.argument_names}
    }
    assert with_id == ACTS.keys() | _READ | _TO_ITS_END


async def test_a_repeat_does_nothing_twice_and_another_call_is_refused(
    controller: Controller, host: ActingHost
) -> None:
    host.on_start, host.on_input = (lambda _: b"? "), (lambda message: message.data)
    caller = _caller(controller.project_id)
    things = await _things(controller, caller)
    asked = {tool: uuid4() for tool in ACTS}
    for tool, (plain, others) in ACTS.items():
        arguments = {
            name: things.get(value, value) if isinstance(value, str) else value
            for name, value in plain.items()
        }
        first = await _call(caller, tool, arguments, asked[tool])
        done = await in_database(_rows)
        again = await _call(caller, tool, arguments, asked[tool])
        assert "code" not in first, (tool, first)
        same = ("session_id", "sessionId", "token", "success", "state", "start_time", "log_deleted")
        assert [again.get(name) for name in same] == [first.get(name) for name in same], tool
        for other in others:
            refused = await _call(caller, tool, {**arguments, **other}, asked[tool])
            assert refused.get("code") == "REQUEST_ID_REUSED", (tool, other)
        refused = await _call(caller, "run_command", {"command": "other"}, asked[tool])
        assert refused.get("code") == "REQUEST_ID_REUSED", tool
        assert await in_database(_rows) == done, tool


async def test_an_id_is_of_one_project(controller: Controller, host: ActingHost) -> None:
    asked, other = uuid4(), await in_database(make_controller, "other")
    other_host = ActingHost(other)
    await in_database(
        Controller.objects.filter(id=other.id).update,
        lease_expires_at=controller.lease_expires_at,
        epoch=1,
    )
    other.epoch = 1
    async with other_host:
        first = await _call(
            _caller(controller.project_id), "start_command", {"command": "cat"}, asked
        )
        second = await _call(_caller(other.project_id), "start_command", {"command": "tac"}, asked)
    assert first["sessionId"] != second["sessionId"]
    assert await in_database(Project.objects.filter(actionrequest__request_id=asked).count) == 2


async def test_an_input_that_was_refused_stays_so_under_its_id(
    controller: Controller, host: ActingHost
) -> None:
    caller = _caller(controller.project_id)
    things = await _things(controller, caller)
    for tool, name, given in (
        ("send_command_input", "session_id", {"input_text": "x\n"}),
        ("write_input", "sessionId", {"input": "x\n"}),
    ):
        arguments = {name: things["terminal" if name == "session_id" else "pipes"], **given}
        host.on_input = lambda _: Failure(code="RULES_UNREADABLE", message="no memory")
        asked, sent = uuid4(), len(host.commands)
        first = await _call(caller, tool, arguments, asked)
        host.on_input = lambda _: b"y"
        assert first["code"] == "RULES_UNREADABLE"
        assert await _call(caller, tool, arguments, asked) == first
        assert len(host.commands) == sent + 1
        assert "code" not in await _call(caller, tool, arguments, uuid4())
        assert len(host.commands) == sent + 2


async def test_a_call_that_was_refused_before_it_did_anything_is_tried_again(
    controller: Controller, host: ActingHost
) -> None:
    caller = _caller(controller.project_id)
    asked = uuid4()
    lacking = Caller(caller.project_id, "token:x", frozenset({"session:read"}))
    for who, arguments, code in (
        (caller, {"command": ""}, "EMPTY_COMMAND"),
        (caller, {"command": "cat", "controller": "nowhere"}, "CONTROLLER_NOT_FOUND"),
        (lacking, {"command": "cat"}, "SCOPE_MISSING"),
        (caller, {"command": "cat", "lifetime": 1}, "INVALID_ARGUMENT"),
    ):
        assert (await _call(who, "start_command", arguments, asked))["code"] == code
    assert "sessionId" in await _call(caller, "start_command", {"command": "cat"}, asked)
    assert len(host.commands) == 1
