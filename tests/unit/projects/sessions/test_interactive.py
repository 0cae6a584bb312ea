"""Calls on interactive sessions: turns, retries, and the rows that record them."""

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.messages import (
    Failure,
    SendInput,
    StartInteractiveCmd,
    TerminateCmd,
)
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.errors.commands import StartFailed
from projects.errors.inputs import InputRefused
from projects.errors.sessions import SessionEnded
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand
from projects.sessions.answers.results import CommandResult, InteractiveCommandResult
from projects.sessions.interactive import (
    controller_send_input,
    controller_start_interactive_command,
    controller_terminate_interactive_command,
    return_code_of,
    session_resize,
)
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"Name: ") as acting:
        yield acting


@pytest.mark.requirement("S3.R1.4", "S3.R2.4")
async def test_a_start_returns_at_the_first_prompt_and_an_input_at_the_next(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "greet")
    assert isinstance(started, InteractiveCommandResult)
    assert (started.state, started.output, started.is_alive, started.exit_code) == (
        "awaiting_input",
        "Name: ",
        True,
        None,
    )
    assert started.prompt is not None
    assert (started.prompt.kind, started.prompt.text, started.prompt.evidence) == (
        "line",
        "Name: ",
        "kernel",
    )
    host.on_input = lambda message: b"hello " + message.data
    answered = await controller_send_input(project_id, started.session_id, "ada\n")
    assert (answered.output, answered.offset, answered.next_offset) == ("hello ada\n", 6, 16)


async def test_what_was_typed_reaches_the_host_exactly(project_id: UUID, host: ActingHost) -> None:
    started = await controller_start_interactive_command(
        project_id, "cat", cwd="/tmp", env={"A": "b"}, rows=30, cols=90, lifetime_seconds=7
    )
    await controller_send_input(project_id, started.session_id, "  é\tno newline")
    await controller_send_input(project_id, started.session_id, keys=["ctrl-c", "enter"])
    start, typed, pressed = host.commands
    assert isinstance(start, StartInteractiveCmd)
    assert (
        start.command,
        start.cwd,
        start.env,
        start.rows,
        start.cols,
        start.lifetime_seconds,
    ) == ("cat", "/tmp", {"A": "b"}, 30, 90, 7)
    assert isinstance(typed, SendInput)
    assert isinstance(pressed, SendInput)
    assert (typed.input_seq, typed.data, pressed.input_seq, pressed.keys) == (
        1,
        "  é\tno newline".encode(),
        2,
        ["ctrl-c", "enter"],
    )


async def test_an_old_prompt_does_not_answer_a_new_input(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "slow")
    host.on_input = lambda _: None
    answered = await controller_send_input(project_id, started.session_id, "x\n", wait_seconds=0.05)
    assert (answered.state, answered.prompt) == ("running", None)
    assert "wait" in answered.hint


async def test_what_was_printed_between_two_calls_is_shown_by_the_next(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: None
    started = await controller_start_interactive_command(project_id, "work", wait_seconds=0.01)
    assert started.state == "running"
    session = str(started.session_id)
    await host.say(host.output(session, b"one\r\n", is_waiting=False))
    first = await controller_send_input(project_id, started.session_id, wait_seconds=0)
    await host.say(host.output(session, b"two\r\n", is_waiting=False))
    await host.say(host.output(session, b"three\r\n> ", is_waiting=True))
    second = await controller_send_input(project_id, started.session_id)
    assert (first.output, second.output) == ("one\n", "two\nthree\n> ")
    assert first.activity == "sleep[12] clock_nanosleep"
    third = await controller_send_input(project_id, started.session_id)
    assert (third.output, third.state) == ("", "awaiting_input")


async def test_a_pattern_ends_the_wait(project_id: UUID, host: ActingHost) -> None:
    host.on_start = lambda _: None
    call = asyncio.create_task(
        controller_start_interactive_command(
            project_id, "serve", wait_for=r"listening on \d+", wait_seconds=20
        )
    )
    await await_until(lambda: host.commands, 30, "the start")
    session = host.commands[0].session_id
    await host.say(host.output(session, b"listen", is_waiting=False))
    await host.say(host.output(session, b"ing on \x1b[1m80", is_waiting=False))
    result = await call
    assert (result.state, result.output) == ("running", "listening on 80")


async def test_a_full_budget_ends_the_wait_and_tells_where_the_rest_is(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: None
    call = asyncio.create_task(
        controller_start_interactive_command(
            project_id, "flood", max_output_bytes=256, wait_seconds=20
        )
    )
    await await_until(lambda: host.commands, 30, "the start")
    lines = b"".join(b"line %03d\r\n" % n for n in range(100))
    await host.say(host.output(host.commands[0].session_id, lines, is_waiting=False))
    result = await call
    assert (result.state, result.truncated, result.next_offset, result.total_bytes) == (
        "running",
        True,
        1000,
        1000,
    )
    assert result.output.startswith("line 000\n")
    assert result.output.endswith("line 099\n")
    assert result.omitted_offset is not None
    assert f"offset={result.omitted_offset}" in result.hint


@pytest.mark.requirement("S3.R3.5")
async def test_the_end_comes_with_the_rest_of_the_output_and_the_exit_code(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "greet")
    session = str(started.session_id)
    await host.say(
        host.output(session, b"bye\r\n", is_waiting=False), host.ended(session, exit_code=3)
    )
    ended = await controller_send_input(project_id, started.session_id)
    assert (ended.state, ended.output, ended.exit_code, ended.end_reason, ended.is_alive) == (
        "exited",
        "bye\n",
        3,
        "exited",
        False,
    )
    with pytest.raises(SessionEnded):
        await controller_send_input(project_id, started.session_id, "too late\n")


@pytest.mark.requirement("S3.R3.2", "S3.V1.8")
async def test_terminating_returns_a_command_result_and_twice_is_no_error(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "greet")
    ended = await controller_terminate_interactive_command(project_id, started.session_id)
    assert isinstance(ended, CommandResult)
    assert (ended.success, ended.return_code) == (True, -15)
    again = await controller_send_input(project_id, started.session_id, terminate=True)
    assert (again.state, again.end_reason) == ("exited", "terminated")
    assert sum(isinstance(command, TerminateCmd) for command in host.commands) == 1


async def test_what_an_admin_saw_while_terminating_is_still_shown_to_the_caller(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "greet")
    await host.say(host.output(str(started.session_id), b"last words\r\n", is_waiting=False))
    by_admin = await controller_terminate_interactive_command(project_id, started.session_id)
    by_caller = await controller_send_input(project_id, started.session_id)
    assert (by_admin.stdout, by_caller.output) == ("last words\n", "last words\n")


async def test_a_start_the_host_has_not_taken_yet_is_withdrawn(
    controller: Controller, project_id: UUID
) -> None:
    started = await controller_start_interactive_command(project_id, "never", wait_seconds=0)
    ended = await controller_send_input(
        project_id, started.session_id, terminate=True, wait_seconds=5
    )
    assert (ended.state, ended.end_reason) == ("exited", "terminated")
    async with ActingHost(controller) as late:
        again = await controller_start_interactive_command(project_id, "next")
        assert again.state == "awaiting_input"
        assert [getattr(command, "command", None) for command in late.commands] == ["next"]


async def test_a_typed_start_failure_is_an_error_and_frees_the_place(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: Failure(code="PROGRAM_NOT_FOUND", message="nonsense: not found")
    with pytest.raises(StartFailed) as failed:
        await controller_start_interactive_command(project_id, "nonsense")
    assert (failed.value.code, failed.value.retryable) == ("PROGRAM_NOT_FOUND", False)
    assert "PATH" in failed.value.hint or "spelling" in failed.value.hint
    host.on_start = lambda _: b"$ "
    assert (await controller_start_interactive_command(project_id, "sh")).state == "awaiting_input"


async def test_a_refused_input_is_an_error_and_the_session_goes_on(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    host.on_input = lambda _: Failure(code="INPUT_LINE_TOO_LONG", message="a line of 5000 bytes")
    with pytest.raises(InputRefused) as refused:
        await controller_send_input(project_id, started.session_id, "y" * 5000 + "\n")
    assert refused.value.code == "INPUT_LINE_TOO_LONG"
    waiting = await controller_send_input(project_id, started.session_id, "", wait_seconds=0)
    assert waiting.state == "awaiting_input"
    assert waiting.hint.endswith(
        "The last input was refused (INPUT_LINE_TOO_LONG: a line of 5000 bytes)."
    )
    host.on_input = lambda message: message.data
    assert (await controller_send_input(project_id, started.session_id, "ok\n")).output == "ok\n"


async def test_a_poll_after_an_input_at_the_end_does_not_report_the_old_prompt(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    host.on_input = lambda _: Failure(code="SESSION_ENDED", message="the program has ended")
    with pytest.raises(InputRefused):
        await controller_send_input(project_id, started.session_id, "late\n")
    assert (
        await controller_send_input(project_id, started.session_id, "", wait_seconds=0)
    ).state == "running"


async def test_a_repeated_start_is_one_program(project_id: UUID, host: ActingHost) -> None:
    request_id = uuid4()
    calls = [
        controller_start_interactive_command(project_id, "greet", request_id=request_id)
        for _ in range(6)
    ]
    results = await asyncio.gather(*calls)
    assert len({result.session_id for result in results}) == 1
    assert {result.output for result in results} == {"Name: "}
    assert len(host.commands) == 1
    with pytest.raises(RequestIdReused):
        await controller_start_interactive_command(project_id, "other", request_id=request_id)


async def test_a_repeated_input_is_typed_once_and_gives_the_same_output(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    request_id = uuid4()
    first = await controller_send_input(
        project_id, started.session_id, "x\n", request_id=request_id
    )
    second = await controller_send_input(
        project_id, started.session_id, "x\n", request_id=request_id
    )
    assert (first.output, first.offset) == (second.output, second.offset) == ("x\n", 6)
    assert sum(isinstance(command, SendInput) for command in host.commands) == 1
    with pytest.raises(RequestIdReused):
        await controller_send_input(project_id, started.session_id, "y\n", request_id=request_id)


async def test_what_is_typed_at_a_hidden_prompt_is_recorded_nowhere(
    project_id: UUID, host: ActingHost
) -> None:
    host.kind = "secret"
    started = await controller_start_interactive_command(project_id, "login")
    host.on_input = lambda _: b"\r\nwelcome\r\n"
    await controller_send_input(project_id, started.session_id, "hunter2\n", request_id=uuid4())

    def recorded() -> str:
        commands = list(ControllerCommand.objects.values_list("body", "failure_message"))
        audit = list(AuditEvent.objects.values_list("detail", "action"))
        sessions = list(CommandSession.objects.values())
        return repr((commands, audit, sessions))

    text = await in_database(recorded)
    assert "hunter2" not in text
    details = await in_database(
        lambda: list(
            AuditEvent.objects.filter(action="session.input").values_list("detail", flat=True)
        )
    )
    assert details == [{"input_seq": 1, "typed": "(hidden input, at most 16 keys)"}]
    assert not await in_database(ControllerCommand.objects.exclude(body=None).exists)


async def test_every_action_is_audited_with_its_caller(project_id: UUID, host: ActingHost) -> None:
    caller = Caller(project_id, "token:bot", frozenset({"admin:*"}))
    started = await controller_start_interactive_command(
        project_id, "cat", caller=caller, env={"TOKEN": "hidden-value"}
    )
    await controller_send_input(
        project_id, started.session_id, "text that stays out\n", caller=caller
    )
    await session_resize(project_id, started.session_id, rows=10, cols=20, caller=caller)
    await controller_terminate_interactive_command(project_id, started.session_id, caller=caller)
    rows = await in_database(
        lambda: list(
            AuditEvent.objects.filter(actor="token:bot")
            .order_by("id")
            .values_list("action", "detail")
        )
    )
    assert [action for action, _ in rows] == [
        "session.start",
        "session.input",
        "session.resize",
        "session.terminate",
    ]
    written = json.dumps(rows)
    assert "stays out" not in written
    assert "hidden-value" not in written
    session = await in_database(CommandSession.objects.get, id=started.session_id)
    assert (session.started_by, session.ended_by, session.rows, session.cols) == (
        "token:bot",
        "token:bot",
        10,
        20,
    )


async def test_cancelling_a_waiting_call_leaves_the_program_alone(
    project_id: UUID, host: ActingHost
) -> None:
    started = await controller_start_interactive_command(project_id, "cat")
    host.on_input = lambda _: None
    call = asyncio.create_task(
        controller_send_input(project_id, started.session_id, "x\n", wait_seconds=20)
    )
    await await_until(lambda: len(host.commands) == 2, 30, "the input")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await host.say(host.output(str(started.session_id), b"late", is_waiting=True))
    assert (await controller_send_input(project_id, started.session_id)).output == "late"


@pytest.mark.parametrize(
    ("code", "name", "expected"),
    [(0, None, 0), (3, "", 3), (None, "SIGKILL", -9), (None, None, None), (None, "?", None)],
)
def test_a_return_code_is_the_exit_code_or_minus_the_signal(
    code: int | None, name: str | None, expected: int | None
) -> None:
    assert return_code_of(code, name) == expected
