"""Background sessions: started, read on by each caller from where it stood, written to, stopped."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import (
    Failure,
    SendInput,
    StartInteractiveCmd,
    TerminateCmd,
)
from projects.accounts.authentication import Caller
from projects.errors.commands import StartFailed, StartUnconfirmed
from projects.errors.inputs import InputRefused, UnknownSignal
from projects.errors.limits import SessionLimitReached
from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession, Controller, Project, ReadCursor
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.sessions.background import (
    BackgroundOutput,
    Stopping,
    background_read,
    background_start,
    background_stop,
    background_write,
    known_signal,
)
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


def _texts(output: BackgroundOutput | None) -> tuple[str, str]:
    assert output is not None
    return output.stdout, output.stderr


def _caller(project_id: UUID, name: str) -> Caller:
    return Caller(project_id, f"token:{name}", frozenset({"admin:*"}), uuid4())


@pytest.mark.requirement("S0.R1.1", "S0.R1.3")
async def test_a_start_returns_id_and_pid_and_shows_nothing_unless_asked_to_wait(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "sleep 10", cwd="/tmp")
    assert (started.pid, started.stdout, started.stderr) == (4711, None, None)
    (command,) = host.commands
    assert isinstance(command, StartInteractiveCmd)
    assert (command.command, command.cwd, command.io_mode, command.stdin) == (
        "sleep 10",
        "/tmp",
        "pipe",
        "open",
    )
    row = await in_database(CommandSession.objects.get, id=started.session_id)
    assert (row.kind, row.io_mode, row.slot, row.lifetime_seconds) == (
        "background",
        "pipe",
        1,
        86400,
    )


@pytest.mark.requirement("S0.R1.2")
async def test_a_waiting_start_returns_first_output_and_reads_continue_after_it(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: b"hello\n"
    started = await background_start(project_id, "echo hello", wait_seconds=20)
    assert (started.stdout, started.stderr) == ("hello\n", "")
    session = str(started.session_id)
    await host.say(host.output(session, b"more\n"), host.ended(session, exit_code=0))
    rest = await background_read(project_id, started.session_id)
    assert (_texts(rest), rest.is_active, rest.exit_code, rest.ended_by) == (
        ("more\n", ""),
        False,
        0,
        "program",
    )


async def test_a_start_that_is_repeated_shows_its_first_output_again(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: b"ready\n"
    request_id = uuid4()
    first = await background_start(project_id, "serve", wait_seconds=20, request_id=request_id)
    again = await background_start(project_id, "serve", wait_seconds=20, request_id=request_id)
    assert first == again
    assert len(host.commands) == 1


@pytest.mark.requirement("S0.R3.1")
async def test_a_write_reaches_the_host_as_it_is_and_is_confirmed(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "cat")
    assert (await background_write(project_id, started.session_id, "data\n")).success
    assert (await background_write(project_id, started.session_id, "", eof=True)).success
    typed, closed = (command for command in host.commands if isinstance(command, SendInput))
    assert (typed.data, typed.eof, closed.data, closed.eof) == (b"data\n", False, b"", True)
    assert (await background_write(project_id, started.session_id, "")).success
    assert len(host.commands) == 3


async def test_a_write_the_host_refuses_says_why(project_id: UUID, host: ActingHost) -> None:
    host.on_input = lambda _: Failure(code="INPUT_BLOCKED", message="the program does not read")
    started = await background_start(project_id, "sleep 10")
    with pytest.raises(InputRefused) as refused:
        await background_write(project_id, started.session_id, "x")
    assert refused.value.code == "INPUT_BLOCKED"


async def test_a_write_that_is_repeated_is_written_once(project_id: UUID, host: ActingHost) -> None:
    started = await background_start(project_id, "cat")
    request_id = uuid4()
    for _ in range(2):
        assert (
            await background_write(project_id, started.session_id, "x\n", request_id=request_id)
        ).success
    assert sum(isinstance(command, SendInput) for command in host.commands) == 1


@pytest.mark.requirement("S0.R4.1")
async def test_stopping_ends_the_program_for_sure_and_twice_is_no_error(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "sleep 100")
    assert (await background_stop(project_id, started.session_id)).success
    over = await background_read(project_id, started.session_id)
    assert (over.is_active, over.signal, over.end_reason, over.ended_by) == (
        False,
        "SIGTERM",
        "terminated",
        "system",
    )
    again = await background_stop(project_id, started.session_id)
    assert not again.success
    assert "over already" in again.hint
    (stop,) = (command for command in host.commands if isinstance(command, TerminateCmd))
    assert (stop.signal, stop.escalate) == ("SIGTERM", True)


@pytest.mark.requirement("S0.R4.2")
async def test_a_named_signal_is_sent_once_and_an_unknown_one_is_reported(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "serve")
    request_id = uuid4()
    for _ in range(2):
        assert (
            await background_stop(
                project_id, started.session_id, signal_name="hup", request_id=request_id
            )
        ).success
    (hang_up,) = (command for command in host.commands if isinstance(command, TerminateCmd))
    assert (hang_up.signal, hang_up.escalate) == ("SIGHUP", False)
    with pytest.raises(UnknownSignal) as unknown:
        await background_stop(project_id, started.session_id, signal_name="SIGFOO")
    assert "SIGHUP" in unknown.value.hint
    session = str(started.session_id)
    await host.say(host.ended(session, exit_code=0))
    assert (await background_read(project_id, started.session_id)).ended_by == "program"


async def test_a_signal_only_the_host_does_not_know_is_named(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_signal = lambda _: Failure(
        code="UNKNOWN_SIGNAL", message="there is no signal of that name"
    )
    started = await background_start(project_id, "serve")
    with pytest.raises(UnknownSignal, match="'SIGSTKFLT'") as unknown:
        await background_stop(project_id, started.session_id, signal_name="stkflt")
    assert "SIGSTKFLT" not in unknown.value.hint


async def test_a_signal_that_the_host_refuses_is_told_with_its_code(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_signal = lambda _: Failure(code="UNREADABLE", message="nobody can read it")
    started = await background_start(project_id, "serve")
    stopped = await background_stop(project_id, started.session_id, signal_name="hup")
    assert (stopped.success, stopped.survivors) == (False, None)
    assert "UNREADABLE" in (stopped.hint or "")


@pytest.mark.parametrize(
    ("signal", "end", "is_sent"),
    [
        ("HUP", {"exit_code": 0}, False),
        ("HUP", {"end_reason": "timed_out", "signal": "SIGKILL"}, False),
        ("HUP", {"signal": "SIGHUP"}, True),
        ("HUP", {"end_reason": "terminated", "exit_code": 0}, True),
    ],
)
async def test_success_of_a_signal_is_that_it_was_sent(
    project_id: UUID, host: ActingHost, signal: str, end: dict[str, Any], is_sent: bool
) -> None:
    started = await background_start(project_id, "serve")
    session = str(started.session_id)
    host.on_signal = lambda _: Failure(code="SESSION_ENDED", message="the program has ended")
    request_id = uuid4()

    async def stop() -> Stopping:
        return await background_stop(
            project_id, started.session_id, signal_name=signal, request_id=request_id
        )

    call = asyncio.create_task(stop())
    await await_until(lambda: len(host.commands) == 2, 30, "the signal to reach the host")
    await host.say(host.ended(session, **end))
    stopped = await call
    assert stopped.success is is_sent
    assert ("over already" in (stopped.hint or "")) is not is_sent
    assert await stop() == stopped
    assert len(host.commands) == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SIGINT", "SIGINT"),
        ("int", "SIGINT"),
        ("9", "SIGKILL"),
        (" usr1 ", "SIGUSR1"),
        ("rtmin+3", "SIGRTMIN+3"),
    ],
)
def test_signals_go_by_any_of_their_names(name: str, expected: str) -> None:
    assert known_signal(name) == expected


@pytest.mark.parametrize("name", ["", "SIG", "0", "999", "SIGFOO", "TERM;id", "²"])
def test_what_is_no_signal_is_refused(name: str) -> None:
    with pytest.raises(UnknownSignal):
        known_signal(name)


async def test_a_session_the_host_has_not_taken_is_withdrawn(
    project_id: UUID, controller: Controller
) -> None:
    call = asyncio.create_task(background_start(project_id, "sleep 1"))

    async def session_id() -> UUID | None:
        return await in_database(
            lambda: CommandSession.objects.values_list("id", flat=True).first()
        )

    session = await await_until(session_id, 30, "the session's row")
    assert (await background_stop(project_id, session)).success
    started = await call
    assert started.pid == 0


async def test_places_run_out_per_kind_and_the_refusal_names_the_limit(
    project_id: UUID, host: ActingHost, settings: object
) -> None:
    settings.MAX_BACKGROUND_SESSIONS = 2
    first = await background_start(project_id, "a")
    await background_start(project_id, "b")
    with pytest.raises(SessionLimitReached) as refused:
        await background_start(project_id, "c")
    assert "allows 2 background sessions at a time" in str(refused.value)
    assert str(first.session_id) in refused.value.hint
    await background_stop(project_id, first.session_id)
    await background_start(project_id, "c")


async def test_a_start_the_host_refuses_is_told_by_its_code(
    project_id: UUID, host: ActingHost
) -> None:
    host.on_start = lambda _: Failure(code="CWD_NOT_FOUND", message="no such directory")
    with pytest.raises(StartFailed) as failed:
        await background_start(project_id, "ls", cwd="/nope")
    assert failed.value.code == "CWD_NOT_FOUND"


async def test_a_start_nobody_confirms_names_the_session(
    project_id: UUID, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projects.sessions.background.START_WAIT_SECONDS", 0.01)
    with pytest.raises(StartUnconfirmed) as unconfirmed:
        await background_start(project_id, "ls")
    row = await in_database(CommandSession.objects.get)
    assert str(row.id) in unconfirmed.value.hint


async def test_reading_keeps_a_session_from_being_idle(
    project_id: UUID, controller: Controller
) -> None:
    long_ago = timezone.now() - timedelta(hours=1)
    session = await in_database(
        lambda: make_session(controller, kind="background", touched_at=long_ago)
    )
    await background_read(project_id, session.id)
    await in_database(session.refresh_from_db)
    assert timezone.now() - session.touched_at < timedelta(minutes=1)


async def test_another_projects_session_does_not_exist(
    project_id: UUID, controller: Controller
) -> None:
    session = await in_database(lambda: make_session(make_controller("other"), kind="background"))
    for call in (
        background_read(project_id, session.id),
        background_write(project_id, session.id, ""),
        background_write(project_id, session.id, "x"),
        background_stop(project_id, session.id),
    ):
        with pytest.raises(SessionNotFound):
            await call
    assert not await in_database(ReadCursor.objects.exists)


async def test_a_gap_of_any_length_is_passed_in_one_read(project_id: UUID) -> None:
    def lossy() -> CommandSession:
        controller = make_controller("other", project=Project.objects.get(id=project_id))
        session = make_session(controller, kind="background", stdout_next_offset=2**40 + 4)
        output_log.add_gap(session.id, "stdout", 0, 2**40, "ring_overflow")
        output_log.append([NewChunk(session.id, "stdout", 2**40, 1, b"rest")])
        return session

    session = await in_database(lossy)
    first = await background_read(project_id, session.id)
    assert (_texts(first), first.lost_bytes, first.has_more) == (("", ""), 2**40, True)
    second = await background_read(project_id, session.id)
    assert (_texts(second), second.lost_bytes, second.has_more) == (("rest", ""), 0, False)
