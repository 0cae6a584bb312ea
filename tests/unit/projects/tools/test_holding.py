"""Attempts of MCP callers to act without a person: through every tool, and in odd forms."""

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from projects import services
from projects.accounts.authentication import AGENT_SCOPES, Caller
from projects.errors.access import ApprovalRequired
from projects.models import ActionRequest, Approval, CommandSession, Controller, ControllerCommand
from projects.sessions import background
from projects.sessions.approvals.answering import approval_answer
from projects.storage.access import in_database
from projects.tools import holding
from projects.tools.registry import tool_named
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)

START, TYPE = "start_interactive_command", "send_command_input"
SESSION = "{session}"
# Neither policy lets one of these act. Each is a tool and its arguments, beside wait_seconds.
ATTEMPTS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("execute_command", {"command": command})
        for command in (
            "rm -rf /srv", "ls; rm x", "ls & rm x", "ls\nrm x", "ls\rrm x", "PATH=/tmp ls",
            "LD_PRELOAD=/tmp/e.so ls", "sort -o out in", "sort --compress-program=/tmp/p -S 1b x",
            "uniq in out", "cat /etc/shadow", "cat ~/.ssh/id_rsa", "echo $(rm x)", "echo `rm x`",
            "true; printf -v 'a[$(touch x)]' y", "bash <<< 'rm x'", "sh deploy.sh", ". deploy.sh",
            "busybox rm x", "timeout 5 rm x", "env -S 'rm x'", "xargs -a list rm", "ssh host rm x",
            "python3 -c 'import os'", "git -c core.pager=x log", "find . -delete", "ls > file",
            "command rm x", "exec rm x", "tee file", "\u0455udo ls", "ls\u202e", "l\\s",
        )
    ),
    ("execute_command", {"command": "ls", "env": {"PATH": "/tmp"}}),
    ("execute_command", {"command": "ls", "input": "rm x"}),
    ("execute_command", {"command": "ls", "cwd": "/proc/self/cwd/../x y"}),
    ("execute_command", {"command": "sh", "input": "rm x", "request_id": str(uuid4())}),
    ("execute_command", {"command": "rm x", "timeout_seconds": "30"}),
    (START, {"command": "bash"}),
    (START, {"command": "bash -i", "request_id": str(uuid4())}),
    (START, {"command": "vim x", "wait_for": "x"}),
    ("start_command", {"command": "rm x"}),
    ("start_command", {"command": "rm x", "timeout": 0, "requestId": str(uuid4())}),
    ("start_command", {"command": "ls", "env": {"LD_PRELOAD": "/tmp/e.so"}}),
    ("run_command", {"command": "rm x", "use_pty": "true"}),
    ("run_command", {"command": "rm x", "use_pty": False, "timeout": 1}),
    (TYPE, {"session_id": SESSION, "input_text": "ls\n"}),
    (TYPE, {"session_id": SESSION, "input_text": "y"}),
    (TYPE, {"session_id": SESSION, "input_text": " "}),
    (TYPE, {"session_id": SESSION, "input_text": "\n"}),
    (TYPE, {"session_id": SESSION, "input_text": "ls\rrm x\n"}),
    (TYPE, {"session_id": SESSION, "input_text": "\x15rm x\n"}),
    (TYPE, {"session_id": SESSION, "keys": ["enter"]}),
    (TYPE, {"session_id": SESSION, "keys": ["ctrl-c"], "view": "screen"}),
    (TYPE, {"session_id": SESSION, "keys": ["up", "enter"], "input_text": ""}),
    (TYPE, {"session_id": SESSION, "secret": "sudo"}),
    (TYPE, {"session_id": SESSION, "terminate": True}),
    (TYPE, {"session_id": SESSION, "terminate": "yes"}),
    (TYPE, {"session_id": SESSION, "terminate": 1, "request_id": str(uuid4())}),
    (TYPE, {"session_id": SESSION.upper(), "input_text": "y\n"}),
    ("write_input", {"sessionId": SESSION, "input": "rm x\n"}),
    ("write_input", {"sessionId": SESSION, "input": "", "eof": True}),
    ("write_input", {"sessionId": SESSION, "input": "x", "eof": "1"}),
    ("stop_command", {"sessionId": SESSION}),
    ("stop_command", {"sessionId": SESSION, "signal": "SIGTERM"}),
    ("stop_command", {"sessionId": SESSION, "signal": "9"}),
    ("stop_command", {"sessionId": SESSION, "signal": "hup"}),
    ("stop_session_monitor", {"session_id": "11111111-1111-4111-8111-111111111111"}),
    ("stop_session_monitor", {"session_id": "11111111-1111-4111-8111-111111111111",
                              "save_log": "false"}),
]  # fmt: skip
# ``ask-risky`` lets these pass, and docs/howto/approvals.md says why. ``ask-all`` does not.
HARMLESS: list[tuple[str, dict[str, Any]]] = [
    ("execute_command", {"command": "ls -l /srv"}),
    ("start_command", {"command": "df -h"}),
    ("stop_session_monitor", {"session_id": str(UUID(int=4)), "save_log": True}),
    (
        "start_session_monitor",
        {"session_id": str(uuid4()), "session_type": "file", "log_file": "/var/log/x"},
    ),
]
# What only reads or waits is never asked about.
READS: list[tuple[str, dict[str, Any]]] = [
    (TYPE, {"session_id": SESSION}),
    (TYPE, {"session_id": SESSION, "input_text": "", "keys": [], "terminate": False}),
    ("get_session", {"session_id": SESSION}),
    ("read_session_output", {"session_id": SESSION}),
    ("read_output", {"sessionId": SESSION}),
    ("list_sessions", {}),
    ("query_command_status", {"token": SESSION}),
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for an answer."""
    monkeypatch.setattr(holding, "WAIT_SECONDS", 0.0)


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    fields = {"terminal_state": "awaiting_input", "terminal_kind": "shell"}
    return make_session(controller, started_by="token:somebody", **fields)


@pytest.fixture
def caller(controller: Controller) -> Caller:
    scopes = frozenset(AGENT_SCOPES)
    return Caller(controller.project_id, "token:mcp", scopes, token_id=uuid4())


async def _code(
    caller: Caller, session: CommandSession, tool: str, arguments: dict[str, Any]
) -> str:
    given = {
        name: str(session.id) if str(value).lower() == SESSION else value
        for name, value in arguments.items()
    }
    if "wait_seconds" in tool_named(tool).argument_names:
        given["wait_seconds"] = 0
    outcome = await tool_named(tool).call(given, caller)
    return str(outcome.body["code"]) if outcome.is_error else "done"


def _acted() -> list[str]:
    """Everything that a host would be sent, and every action on record."""
    commands = ControllerCommand.objects.exclude(type="PAUSE_LIFETIME")
    return [*map(str, commands), *map(str, ActionRequest.objects.all())]


@pytest.mark.parametrize("policy", ["ask-risky", "ask-all", "policy-of-tomorrow"])
async def test_nothing_acts_unasked(
    caller: Caller, session: CommandSession, policy: str, settings: Any
) -> None:
    settings.MAX_PENDING_APPROVALS = 500
    held = replace(caller, approvals=policy)
    codes = {
        f"{tool} {arguments}": await _code(held, session, tool, arguments)
        for tool, arguments in ATTEMPTS
    }
    assert {at: code for at, code in codes.items() if code != "APPROVAL_PENDING"} == {}
    assert await in_database(_acted) == []
    assert await in_database(CommandSession.objects.count) == 1


async def test_ask_all_asks_about_what_is_harmless_too(
    caller: Caller, session: CommandSession
) -> None:
    held = replace(caller, approvals="ask-all")
    for tool, arguments in HARMLESS:
        assert await _code(held, session, tool, arguments) == "APPROVAL_PENDING", tool
    assert await in_database(_acted) == []


@pytest.mark.parametrize(("policy", "calls"), [("ask-risky", HARMLESS), ("ask-all", READS)])
async def test_what_a_policy_lets_pass_asks_nobody(
    caller: Caller,
    session: CommandSession,
    policy: str,
    calls: list[tuple[str, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reached: list[str] = []
    held = replace(caller, approvals=policy)
    for tool, arguments in calls:

        async def note(model: Any, caller: Caller, tool: str = tool) -> Any:
            assert not caller.is_held
            reached.append(tool)
            raise ApprovalRequired

        monkeypatch.setitem(tool_named(tool).__dict__, "handler", note)
        monkeypatch.setitem(tool_named(tool).__dict__, "errors", (ApprovalRequired,))
        await _code(held, session, tool, arguments)
    assert reached == [tool for tool, _ in calls]
    assert await in_database(Approval.objects.count) == 0


async def test_an_approved_call_acts_once(
    caller: Caller, session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = replace(caller, approvals="ask-all")
    call = {"sessionId": str(session.id), "requestId": str(uuid4()), "signal": "SIGHUP"}
    assert await _code(held, session, "stop_command", call) == "APPROVAL_PENDING"
    asked = await in_database(Approval.objects.get)
    await in_database(
        lambda: approval_answer(approval_id=asked.id, is_approved=True, actor="admin:ada")
    )
    monkeypatch.setattr(background, "STOP_WAIT_SECONDS", 0.0)
    assert [await _code(held, session, "stop_command", call) for _ in range(2)] == ["done"] * 2
    sent = await in_database(lambda: ControllerCommand.objects.filter(type="TERMINATE_CMD").count())
    assert sent == 1


async def test_no_service_acts_for_a_caller_that_was_not_asked_about(
    caller: Caller, session: CommandSession
) -> None:
    held, project = replace(caller, approvals="ask-risky"), caller.project_id
    monitor = str(uuid4())
    for act in (
        lambda: services.command_execute(project, "ls", caller=held),
        lambda: services.background_start(project, "ls", caller=held),
        lambda: services.job_submit(project, "ls", caller=held),
        lambda: services.controller_start_interactive_command(project, "ls", caller=held),
        lambda: services.controller_send_input(project, session.id, "y\n", caller=held),
        lambda: services.controller_send_input(project, session.id, terminate=True, caller=held),
        lambda: services.controller_terminate_interactive_command(project, session.id, caller=held),
        lambda: services.session_ask_person(project, session.id, "the password", caller=held),
        lambda: services.background_write(project, session.id, "y\n", caller=held),
        lambda: services.background_stop(project, session.id, caller=held),
        lambda: services.monitor_start(project, monitor, "file", "/var/log/x", caller=held),
        lambda: services.monitor_stop(project, monitor, caller=held),
    ):
        with pytest.raises(ApprovalRequired):
            await act()
    assert await in_database(_acted) == []
