"""A batch of frames: what it stores and answers, and that a repeat of it changes nothing."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    Gap,
    InputAck,
    InteractiveOutput,
    SendInput,
    Started,
    Stream,
    TerminalReport,
)
from controller_client.protocol.session_state import SessionState
from projects.errors.uncertain import input_error
from projects.link.inbound.batch import BatchResult, SessionMessage, commit_batch
from projects.link.inbound.refusals import Fenced, UnexpectedFrame, UnknownSession
from projects.models import CommandSession, Controller, ControllerCommand, OutputChunk
from projects.output import log as output_log
from projects.sessions import outbox
from tests.support.databases.locks import waits_for_a_lock
from tests.support.rows import make_controller, make_session
from tests.support.waiting import wait_until

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


def _waiting(offset: int, input_seq: int = 0, **fields: Any) -> TerminalReport:
    return TerminalReport(
        state="awaiting_input",
        offset=offset,
        input_seq=input_seq,
        kind="line",
        evidence="kernel",
        **fields,
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


def test_output_is_stored_acknowledged_and_rung_for(
    controller: Controller, session: CommandSession
) -> None:
    result = _commit(
        controller, _output(session, 0, b"Name: ", terminal=_waiting(6, prompt="Name: "))
    )
    session.refresh_from_db()
    assert output_log.read(session.id, "stdout", 0, 100).data == b"Name: "
    assert [(a.session_id, a.stream, a.offset) for a in result.acks] == [
        (str(session.id), "stdout", 6)
    ]
    assert result.rings == {str(session.id)}
    assert (session.stdout_next_offset, session.terminal_state, session.terminal_offset) == (
        6,
        "awaiting_input",
        6,
    )
    assert (session.terminal_kind, session.terminal_evidence, session.terminal_prompt) == (
        "line",
        "kernel",
        "Name: ",
    )


def test_one_frame_costs_three_statements_and_a_new_prompt_one_more(
    controller: Controller, session: CommandSession
) -> None:
    for terminal, more in ((None, 0), (_waiting(2), 1)):
        with CaptureQueriesContext(connection) as queries:
            _commit(controller, _output(session, 2 * more, b"xx", terminal=terminal))
        kinds = [query["sql"].split()[0] for query in queries if "SAVEPOINT" not in query["sql"]]
        reads = 2 if connection.features.has_select_for_update else 1
        assert kinds == [*["SELECT"] * reads, *["INSERT"] * (1 + more), "UPDATE"]


def test_many_frames_of_several_sessions_cost_one_read_and_one_row_each(
    controller: Controller,
) -> None:
    sessions = [make_session(controller) for _ in range(3)]
    frames = [_output(session, offset, b"x") for offset in range(10) for session in sessions]
    result = _commit(controller, *frames)
    assert OutputChunk.objects.count() == 3
    assert sorted(a.offset for a in result.acks) == [10, 10, 10]


def test_a_repeated_batch_changes_nothing_and_is_acknowledged_again(
    controller: Controller, session: CommandSession
) -> None:
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


def test_text_a_database_cannot_hold_is_made_fit(
    controller: Controller, session: CommandSession
) -> None:
    _commit(
        controller,
        _output(session, 0, b"x", terminal=_waiting(1, prompt="a\0b" + "x" * 9999, detail="\0")),
    )
    session.refresh_from_db()
    assert session.terminal_prompt.startswith("a\ufffdb")
    assert len(session.terminal_prompt) == 512


def test_an_input_acknowledgement_wipes_the_body_and_wakes_nobody(
    controller: Controller,
    session: CommandSession,
) -> None:
    seq = _input(session, 1)
    result = _commit(
        controller,
        InputAck(session_id=str(session.id), command_seq=seq, input_seq=1, accepted_bytes=8),
    )
    command = ControllerCommand.objects.get(seq=seq)
    session.refresh_from_db()
    assert (command.body, command.failure_code, session.input_acked_seq) == (None, "", 1)
    assert command.settled_at is not None
    assert result.rings == set()


def test_a_refused_input_says_why_and_wakes_its_caller(
    controller: Controller, session: CommandSession
) -> None:
    seq = _input(session, 1)
    failure = Failure(code="INPUT_LINE_TOO_LONG", message="over 4095 bytes")
    result = _commit(
        controller,
        InputAck(session_id=str(session.id), command_seq=seq, input_seq=1, failure=failure),
    )
    command = ControllerCommand.objects.get(seq=seq)
    assert (command.failure_code, command.failure_message, command.body) == (
        "INPUT_LINE_TOO_LONG",
        "over 4095 bytes",
        None,
    )
    assert result.rings == {str(session.id)}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("INPUT_BLOCKED", "INPUT_BLOCKED"),
        *(
            (code, "INPUT_UNCONFIRMED")
            for code in (
                "NOT_ASKING_FOR_SECRET",
                "READER_NOT_PROVEN",
                "STDIN_CLOSED",
                "SESSION_ENDED",
            )
        ),
    ],
)
def test_an_input_that_was_typed_in_part_is_not_told_as_untyped(
    controller: Controller,
    session: CommandSession,
    code: str,
    told: str,
) -> None:
    seq = _input(session, 1)
    failure = Failure(code=code, message="why not the rest")
    _commit(
        controller,
        InputAck(
            session_id=str(session.id),
            command_seq=seq,
            input_seq=1,
            accepted_bytes=7,
            failure=failure,
        ),
    )
    command = ControllerCommand.objects.get(seq=seq)
    assert (command.failure_code, command.body) == (told, None)
    assert "7 bytes of it were typed" in command.failure_message
    assert "why not the rest" in command.failure_message
    said = input_error(command.failure_code, command.failure_message)
    assert "Nothing" not in f"{said.hint} {said}"


@pytest.mark.parametrize("code", ["SESSION_ENDED", "SESSION_NOT_FOUND"])
def test_an_input_that_was_sent_again_may_have_been_typed_the_first_time(
    controller: Controller,
    session: CommandSession,
    code: str,
) -> None:
    seq = _input(session, 1)
    ControllerCommand.objects.filter(seq=seq).update(is_sent_again=True)
    failure = Failure(code=code, message="the program has ended")
    _commit(
        controller,
        InputAck(session_id=str(session.id), command_seq=seq, input_seq=1, failure=failure),
    )
    command = ControllerCommand.objects.get(seq=seq)
    assert command.failure_code == "INPUT_UNCONFIRMED"
    assert "not known whether it was typed" in command.failure_message


def test_an_acknowledgement_of_another_sessions_command_settles_nothing(
    controller: Controller, session: CommandSession
) -> None:
    seq = _input(make_session(controller), 1)
    _commit(
        controller,
        InputAck(session_id=str(session.id), command_seq=seq, input_seq=1),
        CommandAck(session_id=str(session.id), command_seq=seq),
    )
    assert ControllerCommand.objects.get(seq=seq).settled_at is None


def test_a_forged_message_stops_the_batch_and_what_came_before_it_is_kept(
    controller: Controller, session: CommandSession
) -> None:
    victim = make_session(make_controller("victim", epoch=3))
    result = _commit(
        controller,
        _output(session, 0, b"mine"),
        _output(victim, 0, b"forged"),
        _output(session, 4, b"late"),
    )
    assert isinstance(result.error, UnknownSession)
    assert output_log.read(session.id, "stdout", 0, 100).data == b"mine"
    assert output_log.read(victim.id, "stdout", 0, 100).data == b""


@pytest.mark.parametrize("session_id", ["", "x", "not-a-uuid", "{}", "\0", str(uuid4())])
def test_a_session_that_does_not_exist_is_refused(controller: Controller, session_id: str) -> None:
    result = _commit(
        controller,
        InteractiveOutput(session_id=session_id, stream="stdout", offset=0, seq=1, data=b"x"),
    )
    assert isinstance(result.error, UnknownSession)


def test_a_session_that_was_never_handed_over_can_say_nothing(controller: Controller) -> None:
    session = make_session(controller, SessionState.PENDING)
    result = _commit(controller, Started(session_id=str(session.id), command_seq=1, pid=1))
    assert isinstance(result.error, UnexpectedFrame)


@pytest.mark.parametrize("epoch", [2, 4])
def test_a_connection_that_is_not_the_newest_writes_nothing(
    controller: Controller, session: CommandSession, epoch: int
) -> None:
    with pytest.raises(Fenced):
        _commit(controller, _output(session, 0, b"late"), epoch=epoch)
    with pytest.raises(Fenced):
        _commit(
            controller,
            InteractiveOutput(session_id=str(uuid4()), stream="stdout", offset=0, seq=1),
            epoch=epoch,
        )
    assert OutputChunk.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_batch_that_waits_for_a_hello_is_fenced_by_it(
    controller: Controller, session: CommandSession
) -> None:
    def late() -> BatchResult:
        with closing(connection):
            return _commit(controller, _output(session, 0, b"late"))

    def has_come() -> bool:
        return not connection.features.has_select_for_update or waits_for_a_lock()

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            CommandSession.objects.filter(id=session.id).update(unnamed_seconds=1)
            committing = threads.submit(late)
            wait_until(has_come, 10, "the batch to wait")
            Controller.objects.filter(id=controller.id).update(epoch=4)
        with pytest.raises(Fenced):
            committing.result()
    assert not OutputChunk.objects.exists()


def test_output_on_two_streams_keeps_the_order_it_was_produced_in(controller: Controller) -> None:
    session = make_session(controller, io_mode="pipe")
    written: list[tuple[Stream, int, bytes]] = [
        ("stdout", 0, b"1"),
        ("stderr", 0, b"2"),
        ("stdout", 1, b"3"),
        ("stderr", 1, b"4"),
    ]
    for stream, offset, data in written:
        _commit(
            controller,
            InteractiveOutput(
                session_id=str(session.id), stream=stream, offset=offset, seq=9, data=data
            ),
        )
    stored = OutputChunk.objects.order_by("seq").values_list("stream", "offset", "data")
    assert [(stream, offset, bytes(data)) for stream, offset, data in stored] == written
