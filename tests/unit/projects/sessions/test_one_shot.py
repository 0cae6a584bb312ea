"""One-shots: what is sent, what comes back, and what a caller is told when it takes too long."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.limits import MAX_STDIN_BYTES
from controller_client.protocol.messages import EndReason, Failure, Gap, RunCommand
from projects.errors.calls import InvalidArgument, RequestIdReused
from projects.errors.commands import StartFailed
from projects.errors.inputs import InputTooLarge
from projects.errors.limits import SessionLimitReached
from projects.models import CommandSession, Controller
from projects.output.stream_text import StreamView
from projects.sessions.one_shot import OneShotResult, command_execute
from projects.storage.access import in_database
from projects.tools.registry import tool_named
from tests.support.hosts.acting_host import ActingHost
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


async def _begun(host: ActingHost, count: int = 1) -> str:
    await await_until(lambda: len(host.commands) == count, 30, "the command to reach the host")
    return str(host.commands[-1].session_id)


@pytest.mark.requirement("S1.R1.1", "S1.R1.2", "S1.R1.3")
async def test_input_goes_with_the_command_and_the_result_comes_at_the_end(
    project_id: UUID, host: ActingHost
) -> None:
    call = asyncio.create_task(
        command_execute(
            project_id, "sort", input_text="b\na\n", cwd="/tmp", env={"A": "b"}, timeout_seconds=7
        )
    )
    session = await _begun(host)
    (command,) = host.commands
    assert isinstance(command, RunCommand)
    assert (command.command, command.input, command.cwd, command.env, command.timeout_seconds) == (
        "sort",
        b"b\na\n",
        "/tmp",
        {"A": "b"},
        7,
    )
    await host.say(host.output(session, b"a\nb\n"), host.output(session, b"odd\n", stream="stderr"))
    assert not call.done()
    await host.say(host.result(session, exit_code=0, duration_seconds=1.5, duration_ms=1500))
    result = await call
    assert isinstance(result, OneShotResult)
    assert (result.success, result.stdout, result.stderr, result.return_code) == (
        True,
        "a\nb\n",
        "odd\n",
        0,
    )
    assert (result.duration_ms, result.timed_out, result.truncated, result.error) == (
        1500,
        False,
        False,
        None,
    )
    row = await in_database(CommandSession.objects.get, id=result.session_id)
    assert (row.kind, row.io_mode, row.slot) == ("one_shot", "pipe", 1)


@pytest.mark.requirement("S1.R8.2")
async def test_a_timeout_keeps_the_output_and_names_the_tools_that_fit(
    project_id: UUID, host: ActingHost
) -> None:
    call = asyncio.create_task(command_execute(project_id, "ask", timeout_seconds=1))
    session = await _begun(host)
    await host.say(host.output(session, b"Name: "))
    await host.say(host.result(session, end_reason="timed_out", signal="SIGTERM", timed_out=True))
    result = await call
    assert (result.success, result.timed_out, result.stdout, result.return_code) == (
        False,
        True,
        "Name: ",
        -15,
    )
    assert result.error is not None
    for tool in ("start_command", "start_interactive_command"):
        assert tool in result.hint
        assert tool in result.error


async def test_an_exit_code_is_no_error_of_the_call(project_id: UUID, host: ActingHost) -> None:
    call = asyncio.create_task(command_execute(project_id, "grep x"))
    await host.say(host.result(await _begun(host), exit_code=1))
    result = await call
    assert (result.success, result.return_code, result.error) == (False, 1, None)


@pytest.mark.parametrize("end_reason", ["exited", "terminated", "timed_out", "lost"])
async def test_success_is_an_exit_code_of_zero_that_the_program_chose_itself(
    project_id: UUID, host: ActingHost, end_reason: EndReason
) -> None:
    call = asyncio.create_task(command_execute(project_id, "trap 'exit 0' TERM; make"))
    await host.say(host.result(await _begun(host), exit_code=0, end_reason=end_reason))
    result = await call
    assert (result.success, result.error is None) == ((end_reason == "exited"),) * 2
    assert (result.end_reason, result.return_code) == (end_reason, 0)
    assert result.timed_out == (end_reason == "timed_out")


async def test_a_start_the_host_refuses_is_told_by_its_code(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: Failure(code="PROGRAM_NOT_FOUND", message="program not found: nope")
    with pytest.raises(StartFailed) as failed:
        await command_execute(project_id, "nope")
    assert failed.value.code == "PROGRAM_NOT_FOUND"
    host.on_start = lambda _: Failure(code="START_FAILED", message="cannot open a terminal")
    with pytest.raises(StartFailed) as failed:
        await command_execute(project_id, "true")
    assert "ask the host's operator" in failed.value.advice(), "the command is not at fault"


async def test_long_output_shows_its_ends(project_id: UUID, host: ActingHost) -> None:
    call = asyncio.create_task(command_execute(project_id, "flood", max_output_bytes=1024))
    session = await _begun(host)
    await host.say(
        host.output(session, b"first\n" + b"x" * 5000 + b"\nlast\n"),
        host.result(session, exit_code=0),
    )
    result = await call
    assert result.stdout.startswith("first\n")
    assert result.stdout.endswith("\nlast\n")
    assert (result.truncated, result.omitted_bytes) == (True, 5012 - 1024)


@pytest.mark.parametrize("view", ["text", "raw"])
async def test_lost_output_is_named_where_it_is_missing(
    project_id: UUID, host: ActingHost, view: StreamView
) -> None:
    call = asyncio.create_task(command_execute(project_id, "flood", view=view))
    session = await _begun(host)
    lost = Gap(session_id=session, stream="stdout", from_offset=6, to_offset=1375, reason="lost")
    await host.say(host.output(session, b"first\n"), lost, host.result(session, exit_code=24))
    result = await call
    assert result.stdout == "first\n\n[… 1369 bytes are lost: lost …]\n"
    assert (result.truncated, result.omitted_bytes) == (True, 0)


async def test_a_retry_runs_nothing_a_second_time(project_id: UUID, host: ActingHost) -> None:
    request_id = uuid4()
    call = asyncio.create_task(command_execute(project_id, "date", request_id=request_id))
    session = await _begun(host)
    await host.say(host.output(session, b"today\n"), host.result(session, exit_code=0))
    assert await call == await command_execute(project_id, "date", request_id=request_id)
    assert len(host.commands) == 1
    with pytest.raises(RequestIdReused):
        await command_execute(project_id, "date -u", request_id=request_id)


async def test_many_run_at_once_and_take_no_places(project_id: UUID, host: ActingHost) -> None:
    calls = [asyncio.create_task(command_execute(project_id, f"echo {n}")) for n in range(40)]
    await _begun(host, 40)
    for command in host.commands:
        assert isinstance(command, RunCommand)
        assert command.command is not None
        text = command.command.removeprefix("echo ").encode()
        await host.say(
            host.output(command.session_id, text), host.result(command.session_id, exit_code=0)
        )
    assert [(await call).stdout for call in calls] == [str(n) for n in range(40)]


async def test_input_that_fits_no_message_is_refused_before_anything_is_written(
    project_id: UUID,
) -> None:
    with pytest.raises(InputTooLarge) as refused:
        await command_execute(project_id, "cat", input_text="x" * (MAX_STDIN_BYTES + 1))
    # There is no second input to send.
    assert "several inputs" not in refused.value.hint
    with pytest.raises(InvalidArgument):
        await command_execute(project_id, "cat", input_text="\ud800")
    assert not await in_database(CommandSession.objects.exists)


async def test_a_host_that_is_gone_is_not_waited_for_for_ever(
    project_id: UUID, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projects.sessions.one_shot._END_SLACK_SECONDS", 0.0)
    result = await command_execute(project_id, "true", timeout_seconds=1)
    assert (result.success, result.return_code, result.end_reason) == (False, None, None)
    assert "get_session" in result.hint


async def test_one_more_than_the_project_may_have_at_once_is_refused(
    project_id: UUID, host: ActingHost, settings: Any
) -> None:
    settings.MAX_ONE_SHOT_COMMANDS = 1
    call = asyncio.create_task(command_execute(project_id, "first"))
    session = await _begun(host)
    with pytest.raises(SessionLimitReached) as refused:
        await command_execute(project_id, "second")
    assert "HOLDLINE_MAX_ONE_SHOT_COMMANDS" in refused.value.hint
    assert refused.value.code in tool_named("execute_command").codes
    await host.say(host.result(session, exit_code=0))
    assert (await call).success
    call = asyncio.create_task(command_execute(project_id, "third"))
    await host.say(host.result(await _begun(host, 2), exit_code=0))
    assert (await call).success
