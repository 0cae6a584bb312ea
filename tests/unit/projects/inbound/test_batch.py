"""Many messages, one transaction: what is stored, what is answered, and what a second time changes (nothing)."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controller_client.protocol.errors import OffsetAhead
from controller_client.protocol.messages import (
    CommandAck,
    CommandResult,
    Failure,
    Gap,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    SendInput,
    Started,
    StartInteractiveCmd,
    Stream,
    StreamFinal,
    TerminalReport,
)
from controller_client.protocol.session_state import SessionState
from projects import dispatch, output_log
from projects.inbound.batch import BatchResult, SessionMessage, commit_batch
from projects.inbound.refusals import Fenced, UnexpectedFrame, UnknownSession
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand, OutputChunk
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


def _output(session: CommandSession, offset: int, data: bytes = b"", **fields: Any) -> InteractiveOutput:
    return InteractiveOutput(session_id=str(session.id), stream="stdout", offset=offset, seq=1, data=data, **fields)


def _waiting(offset: int, input_seq: int = 0, **fields: Any) -> TerminalReport:
    return TerminalReport(state="awaiting_input", offset=offset, input_seq=input_seq, kind="line", evidence="kernel", **fields)


def _command(session: CommandSession, message: Any) -> int:
    seq, _, _ = dispatch.allocate_seq(session.controller_id)
    dispatch.enqueue(controller_id=session.controller_id, session_id=session.id, message=message(seq))
    return seq


def _input(session: CommandSession, input_seq: int) -> int:
    return _command(session, lambda seq: SendInput(seq=seq, session_id=str(session.id), input_seq=input_seq, data=b"hunter2\n"))


def test_output_is_stored_acknowledged_and_rung_for(controller: Controller, session: CommandSession) -> None:
    result = _commit(controller, _output(session, 0, b"Name: ", terminal=_waiting(6, prompt="Name: ")))
    session.refresh_from_db()
    assert output_log.read(session.id, "stdout", 0, 100).data == b"Name: "
    assert [(a.session_id, a.stream, a.offset) for a in result.acks] == [(str(session.id), "stdout", 6)]
    assert result.rings == {str(session.id)}
    assert (session.stdout_next_offset, session.terminal_state, session.terminal_offset) == (6, "awaiting_input", 6)
    assert (session.terminal_kind, session.terminal_evidence, session.terminal_prompt) == ("line", "kernel", "Name: ")


def test_one_frame_costs_three_statements(controller: Controller, session: CommandSession) -> None:
    with CaptureQueriesContext(connection) as queries:
        _commit(controller, _output(session, 0, b"x", terminal=_waiting(1)))
    kinds = [query["sql"].split()[0] for query in queries if "SAVEPOINT" not in query["sql"]]
    assert kinds == ["SELECT", "INSERT", "UPDATE"]


def test_many_frames_of_several_sessions_cost_one_read_and_one_row_each(controller: Controller) -> None:
    sessions = [make_session(controller) for _ in range(3)]
    frames = [_output(session, offset, b"x") for offset in range(10) for session in sessions]
    result = _commit(controller, *frames)
    assert OutputChunk.objects.count() == 3
    assert sorted(a.offset for a in result.acks) == [10, 10, 10]


def test_a_batch_that_comes_again_changes_nothing_and_is_acknowledged_again(controller: Controller, session: CommandSession) -> None:
    batch = [
        _output(session, 0, b"abc", terminal=_waiting(3)),
        Gap(session_id=str(session.id), stream="stdout", from_offset=3, to_offset=7, reason="lost"),
    ]
    first = _commit(controller, *batch)
    before = list(CommandSession.objects.values())
    again = _commit(controller, *batch)
    assert list(CommandSession.objects.values()) == before
    assert again.acks == first.acks
    assert again.rings == set()


def test_text_a_database_cannot_hold_is_made_fit(controller: Controller, session: CommandSession) -> None:
    _commit(controller, _output(session, 0, b"x", terminal=_waiting(1, prompt="a\0b" + "x" * 9999, detail="\0")))
    session.refresh_from_db()
    assert session.terminal_prompt.startswith("a\ufffdb")
    assert len(session.terminal_prompt) == 512


def test_an_acknowledged_input_is_settled_and_its_body_wiped_without_waking_anybody(
    controller: Controller, session: CommandSession
) -> None:
    seq = _input(session, 1)
    result = _commit(controller, InputAck(session_id=str(session.id), command_seq=seq, input_seq=1, accepted_bytes=8))
    command = ControllerCommand.objects.get(seq=seq)
    session.refresh_from_db()
    assert (command.body, command.failure_code, session.input_acked_seq) == (None, "", 1)
    assert command.settled_at is not None
    assert result.rings == set()


def test_a_refused_input_says_why_and_wakes_its_caller(controller: Controller, session: CommandSession) -> None:
    seq = _input(session, 1)
    failure = Failure(code="INPUT_LINE_TOO_LONG", message="over 4095 bytes")
    result = _commit(controller, InputAck(session_id=str(session.id), command_seq=seq, input_seq=1, failure=failure))
    command = ControllerCommand.objects.get(seq=seq)
    assert (command.failure_code, command.failure_message, command.body) == ("INPUT_LINE_TOO_LONG", "over 4095 bytes", None)
    assert result.rings == {str(session.id)}


def test_an_acknowledgement_of_another_sessions_command_settles_nothing(controller: Controller, session: CommandSession) -> None:
    seq = _input(make_session(controller), 1)
    _commit(
        controller,
        InputAck(session_id=str(session.id), command_seq=seq, input_seq=1),
        CommandAck(session_id=str(session.id), command_seq=seq),
    )
    assert ControllerCommand.objects.get(seq=seq).settled_at is None


def test_started_makes_a_session_running_once(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    seq = _command(session, lambda seq: StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat"))
    started = Started(session_id=str(session.id), command_seq=seq, pid=77, warning="no PTY to be had")
    for _ in range(2):
        result = _commit(controller, started)
    session.refresh_from_db()
    assert (session.state, session.pid, session.warning) == ("RUNNING", 77, "no PTY to be had")
    assert ControllerCommand.objects.get(seq=seq).settled_at is not None
    assert not result.has_commands


@pytest.mark.parametrize(("code", "state"), [("EXPIRED", "EXPIRED"), ("PROGRAM_NOT_FOUND", "START_FAILED")])
def test_a_failed_start_is_an_end_the_host_may_forget(controller: Controller, code: str, state: str) -> None:
    session = make_session(controller, SessionState.SENT)
    started = Started(session_id=str(session.id), command_seq=1, failure=Failure(code=code, message="why"))
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
    controller: Controller, session: CommandSession, reason: Any, state: str, ended_by: str
) -> None:
    seq = _input(session, 1)
    done = InteractiveCmdDone(session_id=str(session.id), end_reason=reason, exit_code=3, survivors=["sleep[9]"], notes=["tty_held"])
    for _ in range(2):
        assert _commit(controller, done).dones == [done]
    session.refresh_from_db()
    assert (session.state, session.exit_code, session.end_reason, session.ended_by) == (state, 3, reason, ended_by)
    assert (session.survivors, session.notes) == (["sleep[9]"], ["tty_held"])
    command = ControllerCommand.objects.get(seq=seq)
    assert (command.body, command.failure_code) == (None, "SESSION_ENDED")
    (event,) = AuditEvent.objects.filter(action="session.end")
    assert (event.actor, event.session_id, event.detail) == ("controller:host", session.id, {"state": state, "exit_code": 3, "signal": ""})


def test_who_asked_for_the_end_stays_on_record(controller: Controller) -> None:
    session = make_session(controller, ended_by="token:agent")
    _commit(controller, InteractiveCmdDone(session_id=str(session.id), end_reason="terminated", signal="SIGTERM"))
    session.refresh_from_db()
    assert (session.ended_by, session.signal) == ("token:agent", "SIGTERM")


def test_the_end_is_dated_as_the_host_measured_it(controller: Controller) -> None:
    session = make_session(controller, started_at=timezone.now() - timedelta(minutes=5))
    _commit(controller, InteractiveCmdDone(session_id=str(session.id), end_reason="exited", exit_code=0, duration_seconds=60.0))
    session.refresh_from_db()
    assert session.started_at is not None
    assert session.ended_at == session.started_at + timedelta(minutes=1)


def test_done_may_come_before_started(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    _commit(controller, _output(session, 0, b"x"), InteractiveCmdDone(session_id=str(session.id), end_reason="exited", exit_code=0))
    session.refresh_from_db()
    assert session.state == "EXITED"


def test_done_with_output_missing_is_refused(controller: Controller, session: CommandSession) -> None:
    final = StreamFinal(stream="stdout", next_offset=5, sha256="")
    result = _commit(controller, InteractiveCmdDone(session_id=str(session.id), end_reason="exited", exit_code=0, streams=[final]))
    session.refresh_from_db()
    assert isinstance(result.error, OffsetAhead)
    assert (session.state, result.dones) == ("RUNNING", [])


def test_a_forged_message_stops_the_batch_and_what_came_before_it_is_kept(controller: Controller, session: CommandSession) -> None:
    victim = make_session(make_controller("victim", epoch=3))
    result = _commit(controller, _output(session, 0, b"mine"), _output(victim, 0, b"forged"), _output(session, 4, b"late"))
    assert isinstance(result.error, UnknownSession)
    assert output_log.read(session.id, "stdout", 0, 100).data == b"mine"
    assert output_log.read(victim.id, "stdout", 0, 100).data == b""


@pytest.mark.parametrize("session_id", ["", "x", "not-a-uuid", "{}", "\0", str(uuid4())])
def test_a_session_that_does_not_exist_is_refused(controller: Controller, session_id: str) -> None:
    result = _commit(controller, InteractiveOutput(session_id=session_id, stream="stdout", offset=0, seq=1, data=b"x"))
    assert isinstance(result.error, UnknownSession)


def test_a_session_that_was_never_handed_over_can_say_nothing(controller: Controller) -> None:
    session = make_session(controller, SessionState.PENDING)
    result = _commit(controller, Started(session_id=str(session.id), command_seq=1, pid=1))
    assert isinstance(result.error, UnexpectedFrame)


@pytest.mark.parametrize("epoch", [2, 4])
def test_a_connection_that_is_not_the_newest_writes_nothing(controller: Controller, session: CommandSession, epoch: int) -> None:
    with pytest.raises(Fenced):
        _commit(controller, _output(session, 0, b"late"), epoch=epoch)
    with pytest.raises(Fenced):
        _commit(controller, InteractiveOutput(session_id=str(uuid4()), stream="stdout", offset=0, seq=1), epoch=epoch)
    assert OutputChunk.objects.count() == 0


def test_the_result_of_a_one_shot_ends_its_session_with_both_streams_checked(controller: Controller) -> None:
    session = make_session(controller, SessionState.RUNNING, io_mode="pipe", started_at=timezone.now())
    key = str(session.id)
    finals = [StreamFinal(stream="stdout", next_offset=3, sha256="a"), StreamFinal(stream="stderr", next_offset=4, sha256="b")]
    result = _commit(
        controller,
        InteractiveOutput(session_id=key, stream="stdout", offset=0, seq=0, data=b"out"),
        InteractiveOutput(session_id=key, stream="stderr", offset=0, seq=1, data=b"fail"),
        CommandResult(
            session_id=key, end_reason="timed_out", signal="SIGTERM", streams=finals, duration_seconds=1.5, timed_out=True, duration_ms=1500
        ),
    )
    session.refresh_from_db()
    assert (session.state, session.signal, session.duration_ms, session.ended_by) == ("TIMED_OUT", "SIGTERM", 1500, "lifetime")
    assert (session.stdout_next_offset, session.stderr_next_offset) == (3, 4)
    assert [done.session_id for done in result.dones] == [key]


def test_output_on_two_streams_keeps_the_order_it_was_produced_in(controller: Controller) -> None:
    session = make_session(controller, io_mode="pipe")
    written: list[tuple[Stream, int, bytes]] = [("stdout", 0, b"1"), ("stderr", 0, b"2"), ("stdout", 1, b"3"), ("stderr", 1, b"4")]
    for stream, offset, data in written:
        _commit(controller, InteractiveOutput(session_id=str(session.id), stream=stream, offset=offset, seq=9, data=data))
    stored = OutputChunk.objects.order_by("seq").values_list("stream", "offset", "data")
    assert [(stream, offset, bytes(data)) for stream, offset, data in stored] == written


def test_pipes_instead_of_the_terminal_that_was_asked_for_are_written_down_with_the_warning(controller: Controller) -> None:
    session = make_session(controller, SessionState.SENT)
    seq = _command(session, lambda seq: StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat"))
    _commit(controller, Started(session_id=str(session.id), command_seq=seq, pid=5, io_mode="pipe", warning="no terminal\0left"))
    session.refresh_from_db()
    assert (session.state, session.io_mode, session.warning, session.pid) == ("RUNNING", "pipe", "no terminal\ufffdleft", 5)


def test_a_session_that_was_adopted_learns_of_its_pipes_when_it_is_attached_to(controller: Controller) -> None:
    session = make_session(controller, SessionState.RUNNING)
    _commit(controller, Started(session_id=str(session.id), command_seq=1, pid=5, io_mode="pipe", warning="no terminal"))
    session.refresh_from_db()
    assert (session.io_mode, session.warning) == ("pipe", "no terminal")


@pytest.mark.parametrize("seconds", [-1.0, 1e308])
def test_an_unbelievable_duration_is_stored_as_the_nearest_that_fits(
    controller: Controller, session: CommandSession, seconds: float
) -> None:
    _commit(controller, InteractiveCmdDone(session_id=str(session.id), end_reason="exited", exit_code=0, duration_seconds=seconds))
    session.refresh_from_db()
    assert session.duration_ms in (0, 2**53)
