"""Starts and ends that a host reports in a batch."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from controller_client.protocol.errors import OffsetAhead
from controller_client.protocol.messages import (
    CommandResult,
    Failure,
    InteractiveCmdDone,
    InteractiveOutput,
    SendInput,
    Started,
    StartInteractiveCmd,
    StreamFinal,
)
from controller_client.protocol.session_state import SessionState
from projects.link.inbound.batch import BatchResult, SessionMessage, commit_batch
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand
from projects.sessions import outbox
from projects.sessions.transactions.control import terminate_session
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller(epoch=3)


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    return make_session(controller, started_at=timezone.now())


def _commit(controller: Controller, *messages: SessionMessage, epoch: int = 3) -> BatchResult:
    return commit_batch(controller.id, epoch, messages)


def _output(
    session: CommandSession, offset: int, data: bytes = b"", **fields: Any
) -> InteractiveOutput:
    return InteractiveOutput(
        session_id=str(session.id), stream="stdout", offset=offset, seq=1, data=data, **fields
    )


def _command(session: CommandSession, message: Any) -> int:
    seq = outbox.allocate_seq(session.controller_id)
    outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message(seq))
    return seq


def _input(session: CommandSession, input_seq: int) -> int:
    return _command(
        session,
        lambda seq: SendInput(
            seq=seq, session_id=str(session.id), input_seq=input_seq, data=b"hunter2\n"
        ),
    )


def test_started_makes_a_session_running_once(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    seq = _command(
        session, lambda seq: StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    )
    started = Started(
        session_id=str(session.id), command_seq=seq, pid=77, warning="no PTY to be had"
    )
    for _ in range(2):
        result = _commit(controller, started)
    session.refresh_from_db()
    assert (session.state, session.pid, session.warning) == ("RUNNING", 77, "no PTY to be had")
    assert ControllerCommand.objects.get(seq=seq).settled_at is not None
    assert not result.has_commands


@pytest.mark.parametrize(
    ("code", "state"), [("EXPIRED", "EXPIRED"), ("PROGRAM_NOT_FOUND", "START_FAILED")]
)
def test_a_failed_start_is_an_end_the_host_may_forget(
    controller: Controller, code: str, state: str
) -> None:
    session = make_session(controller, SessionState.SENT)
    started = Started(
        session_id=str(session.id), command_seq=1, failure=Failure(code=code, message="why")
    )
    for _ in range(2):
        assert _commit(controller, started).forget == [str(session.id)]
    session.refresh_from_db()
    assert (session.state, session.failure_code, session.failure_message) == (state, code, "why")
    assert session.ended_at is not None
    assert AuditEvent.objects.filter(action="session.end").count() == 1


@pytest.mark.requirement("S3.R3.1")
@pytest.mark.parametrize(
    ("reason", "state", "ended_by"),
    [
        ("exited", "EXITED", "program"),
        ("terminated", "TERMINATED", "host"),
        ("timed_out", "TIMED_OUT", "lifetime"),
        ("lost", "LOST", "host"),
    ],
)
def test_done_ends_a_session_and_settles_what_was_open(
    controller: Controller,
    session: CommandSession,
    reason: Any,
    state: str,
    ended_by: str,
) -> None:
    seq = _input(session, 1)
    done = InteractiveCmdDone(
        session_id=str(session.id),
        end_reason=reason,
        exit_code=3,
        survivors=["sleep[9]"],
        notes=["tty_held"],
    )
    for _ in range(2):
        assert _commit(controller, done).dones == [done]
    session.refresh_from_db()
    assert (session.state, session.exit_code, session.end_reason, session.ended_by) == (
        state,
        3,
        reason,
        ended_by,
    )
    assert (session.survivors, session.notes) == (["sleep[9]"], ["tty_held"])
    command = ControllerCommand.objects.get(seq=seq)
    assert (command.body, command.failure_code) == (None, "SESSION_ENDED")
    (event,) = AuditEvent.objects.filter(action="session.end")
    assert (event.actor, event.session_id, event.detail) == (
        "controller:host",
        session.id,
        {"state": state, "exit_code": 3, "signal": ""},
    )


def test_who_asked_for_the_end_stays_on_record(controller: Controller) -> None:
    session = make_session(controller, ended_by="token:agent")
    _commit(
        controller,
        InteractiveCmdDone(session_id=str(session.id), end_reason="terminated", signal="SIGTERM"),
    )
    session.refresh_from_db()
    assert (session.ended_by, session.signal) == ("token:agent", "SIGTERM")


@pytest.mark.parametrize(("died_of", "ended_by"), [("SIGUSR1", "alice"), ("SIGTERM", "host")])
def test_who_sent_the_signal_a_program_died_of_ended_it(
    controller: Controller, died_of: str, ended_by: str
) -> None:
    session = make_session(controller)
    for actor, signal_name in (("alice", "SIGUSR1"), ("bob", "SIGWINCH")):
        terminate_session(
            session.project_id, session.id, actor, signal_name=signal_name, is_escalated=False
        )
    _commit(
        controller,
        InteractiveCmdDone(session_id=str(session.id), end_reason="terminated", signal=died_of),
    )
    session.refresh_from_db()
    assert session.ended_by == ended_by


def test_the_end_is_dated_as_the_host_measured_it(controller: Controller) -> None:
    session = make_session(controller, started_at=timezone.now() - timedelta(minutes=5))
    _commit(
        controller,
        InteractiveCmdDone(
            session_id=str(session.id), end_reason="exited", exit_code=0, duration_seconds=60.0
        ),
    )
    session.refresh_from_db()
    assert session.started_at is not None
    assert session.ended_at == session.started_at + timedelta(minutes=1)


def test_done_may_come_before_started(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    _commit(
        controller,
        _output(session, 0, b"x"),
        InteractiveCmdDone(session_id=str(session.id), end_reason="exited", exit_code=0),
    )
    session.refresh_from_db()
    assert session.state == "EXITED"


def test_done_with_output_missing_is_refused(
    controller: Controller, session: CommandSession
) -> None:
    final = StreamFinal(stream="stdout", next_offset=5, sha256="")
    result = _commit(
        controller,
        InteractiveCmdDone(
            session_id=str(session.id), end_reason="exited", exit_code=0, streams=[final]
        ),
    )
    session.refresh_from_db()
    assert isinstance(result.error, OffsetAhead)
    assert (session.state, result.dones) == ("RUNNING", [])


def test_a_one_shot_result_ends_its_session_and_checks_both_streams(controller: Controller) -> None:
    session = make_session(
        controller, SessionState.RUNNING, io_mode="pipe", started_at=timezone.now()
    )
    key = str(session.id)
    finals = [
        StreamFinal(stream="stdout", next_offset=3, sha256="a"),
        StreamFinal(stream="stderr", next_offset=4, sha256="b"),
    ]
    result = _commit(
        controller,
        InteractiveOutput(session_id=key, stream="stdout", offset=0, seq=0, data=b"out"),
        InteractiveOutput(session_id=key, stream="stderr", offset=0, seq=1, data=b"fail"),
        CommandResult(
            session_id=key,
            end_reason="timed_out",
            signal="SIGTERM",
            streams=finals,
            duration_seconds=1.5,
            timed_out=True,
            duration_ms=1500,
        ),
    )
    session.refresh_from_db()
    assert (session.state, session.signal, session.duration_ms, session.ended_by) == (
        "TIMED_OUT",
        "SIGTERM",
        1500,
        "lifetime",
    )
    assert (session.stdout_next_offset, session.stderr_next_offset) == (3, 4)
    assert [done.session_id for done in result.dones] == [key]


def test_a_fallback_to_pipes_is_stored_with_its_warning(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    seq = _command(
        session, lambda seq: StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    )
    _commit(
        controller,
        Started(
            session_id=str(session.id),
            command_seq=seq,
            pid=5,
            io_mode="pipe",
            warning="no terminal\0left",
        ),
    )
    session.refresh_from_db()
    assert (session.state, session.io_mode, session.warning, session.pid) == (
        "RUNNING",
        "pipe",
        "no terminal\ufffdleft",
        5,
    )


def test_an_adopted_session_learns_its_pipe_mode_from_started(controller: Controller) -> None:
    session = make_session(controller, SessionState.RUNNING)
    _commit(
        controller,
        Started(
            session_id=str(session.id), command_seq=1, pid=5, io_mode="pipe", warning="no terminal"
        ),
    )
    session.refresh_from_db()
    assert (session.io_mode, session.warning) == ("pipe", "no terminal")


@pytest.mark.parametrize("seconds", [-1.0, 1e308])
def test_an_unbelievable_duration_is_stored_as_the_nearest_that_fits(
    controller: Controller,
    session: CommandSession,
    seconds: float,
) -> None:
    _commit(
        controller,
        InteractiveCmdDone(
            session_id=str(session.id), end_reason="exited", exit_code=0, duration_seconds=seconds
        ),
    )
    session.refresh_from_db()
    assert session.duration_ms in (0, 2**53)


def test_a_lost_program_is_not_said_to_have_run_for_no_time(
    controller: Controller, session: CommandSession
) -> None:
    _commit(controller, InteractiveCmdDone(session_id=str(session.id), end_reason="lost"))
    session.refresh_from_db()
    assert (session.state, session.duration_ms) == ("LOST", None)
