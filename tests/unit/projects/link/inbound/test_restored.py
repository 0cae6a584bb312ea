"""A restored database takes the higher of each number, and records each disagreement."""

from datetime import timedelta
from typing import Any, Literal
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.utils import timezone

from controller_client.protocol.messages import (
    InputAck,
    SendInput,
    SessionFound,
    SessionSummary,
    StartInteractiveCmd,
    StreamPosition,
)
from controller_client.protocol.session_state import SessionState
from controller_client.protocol.values import TELLS_FOUND
from projects.link.inbound import batch, reconciling, restored
from projects.link.inbound import hello as greeting
from projects.link.inbound.commands import take_commands
from projects.link.inbound.connection_memory import ConnectionMemory
from projects.link.inbound.refusals import DatabaseRestored
from projects.models import AuditEvent, CommandSession, Controller, ControllerCommand
from projects.sessions import outbox
from tests.support.rows import make_controller, make_hello, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller(instance_id="instance-1", boot_id="boot-1", epoch=4)


def _summary(
    session_id: object,
    *,
    applied: int = 0,
    state: Literal["running", "done", "lost"] = "running",
    first: int = 0,
    pipes: bool = False,
) -> SessionSummary:
    streams = [StreamPosition(stream="stdout", first_offset=first, next_offset=first + 5)]
    if pipes:
        streams.append(StreamPosition(stream="stderr", first_offset=0, next_offset=0))
    return SessionSummary(
        session_id=str(session_id), state=state, streams=streams, input_seq=applied, pid=123
    )


def _type(session: CommandSession, text: str, **fields: Any) -> ControllerCommand:
    session.refresh_from_db()
    seq = outbox.allocate_seq(session.controller_id)
    number = session.input_seq + 1
    message = SendInput(seq=seq, session_id=str(session.id), input_seq=number, data=text.encode())
    outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    CommandSession.objects.filter(id=session.id).update(input_seq=number)
    ControllerCommand.objects.filter(controller_id=session.controller_id, seq=seq).update(**fields)
    return ControllerCommand.objects.get(controller_id=session.controller_id, seq=seq)


def _sent(controller: Controller, epoch: int) -> list[tuple[int, bytes]]:
    messages, _ = take_commands(controller.id, epoch)
    return [
        (message.input_seq, message.data) for message in messages if isinstance(message, SendInput)
    ]


def test_an_input_after_a_restore_gets_a_number_the_host_has_not_used(
    controller: Controller,
) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    greeting.hello(controller.id, make_hello(_summary(session.id, applied=3)))
    _type(session, "four")
    assert _sent(controller, 5) == [(4, b"four")]
    event = AuditEvent.objects.get(action="session.restored")
    assert event.detail["inputs"] == {"server": 1, "host": 3, "moved": 0, "unconfirmed": 0}


def test_an_input_whose_key_is_gone_does_not_keep_its_host_away(
    controller: Controller, settings: Any
) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    unread = _type(session, "two")
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    welcome, _ = greeting.hello(controller.id, make_hello(_summary(session.id, applied=3)))
    _type(session, "three")
    assert _sent(controller, welcome.epoch)[-1][1] == b"three"
    unread.refresh_from_db()
    assert unread.failure_code == "INPUT_UNCONFIRMED"
    assert unread.settled_at is not None


def test_inputs_queued_before_the_host_returned_are_renumbered_and_typed(
    controller: Controller,
) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    waiting = [_type(session, text) for text in ("four", "five", "six")]
    welcome, _ = greeting.hello(controller.id, make_hello(_summary(session.id, applied=3)))
    typed = _sent(controller, welcome.epoch)
    session.refresh_from_db()
    for command in waiting:
        command.refresh_from_db()
    if connection.vendor == "sqlite":
        assert typed == [(4, b"four"), (5, b"five"), (6, b"six")]
        assert (session.input_seq, [command.input_seq for command in waiting]) == (6, [4, 5, 6])
    else:
        # Of processes that share a database none can tell whether the first two are from before the
        # restore.
        assert typed == [(4, b"six")]
        assert [command.failure_code for command in waiting] == [
            "INPUT_UNCONFIRMED",
            "INPUT_UNCONFIRMED",
            "",
        ]


def _silent(session: CommandSession) -> SessionSummary:
    return SessionSummary(session_id=str(session.id), state="running", streams=[], input_seq=0)


def test_no_input_is_sent_to_a_silent_holder_before_its_count_is_known(
    controller: Controller,
) -> None:
    session, other = (
        make_session(controller, input_seq=1, input_acked_seq=1),
        make_session(controller),
    )
    hello = make_hello(_silent(session), _summary(other.id), capabilities=[TELLS_FOUND])
    memory = ConnectionMemory()
    welcome, _ = greeting.hello(controller.id, hello)
    memory.greeted(hello, welcome)
    assert [directive.is_awaited for directive in welcome.sessions] == [True, False]
    for number in range(2, 5):
        _type(session, f"before {number}")
    _type(other, "other")
    taken = memory.take_commands(controller.id, welcome.epoch, 0)
    held = taken.messages
    assert [
        (message.input_seq, message.data) for message in held if isinstance(message, SendInput)
    ] == [(1, b"other")]
    found = SessionFound(session_id=str(session.id), input_seq=3)
    assert memory.is_expected(found)
    assert batch.commit_batch(controller.id, welcome.epoch, [found]).has_commands
    memory.committed([found])
    assert not memory.is_expected(found)
    late = memory.take_commands(controller.id, welcome.epoch, taken.up_to)
    numbers = [message.input_seq for message in late.messages if isinstance(message, SendInput)]
    # None is given a number that the holder has used; what could not be told to be new is said to
    # be not known.
    assert numbers == ([4, 5, 6] if connection.vendor == "sqlite" else [4])
    session.refresh_from_db()
    assert (session.input_seq, session.input_acked_seq) == (numbers[-1], 3)


def test_a_daemon_that_cannot_tell_of_it_later_is_given_the_input_at_once(
    controller: Controller,
) -> None:
    session = make_session(controller)
    welcome, _ = greeting.hello(controller.id, make_hello(_silent(session)))
    assert not welcome.sessions[0].is_awaited


def test_an_answer_repeated_by_a_found_holder_settles_no_other_input(
    controller: Controller,
) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    command = _type(session, "two")
    welcome, _ = greeting.hello(
        controller.id, make_hello(_silent(session), capabilities=[TELLS_FOUND])
    )
    repeated = InputAck(
        session_id=str(session.id), command_seq=command.seq, input_seq=2, accepted_bytes=3
    )
    batch.commit_batch(
        controller.id,
        welcome.epoch,
        [SessionFound(session_id=str(session.id), input_seq=2), repeated],
    )
    command.refresh_from_db()
    assert command.settled_at is None or command.failure_code == "INPUT_UNCONFIRMED"


def test_an_input_from_before_the_restore_is_reported_as_unconfirmed(
    controller: Controller,
) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    old = reconciling._SINCE - timedelta(hours=1)
    unknown, later = _type(session, "two", created_at=old), _type(session, "three", created_at=old)
    welcome, _ = greeting.hello(controller.id, make_hello(_summary(session.id, applied=2)))
    unknown.refresh_from_db()
    assert (unknown.failure_code, unknown.body) == ("INPUT_UNCONFIRMED", None)
    later.refresh_from_db()
    assert _sent(controller, welcome.epoch) == [(3, b"three")]


def test_numbers_of_inputs_that_were_withdrawn_are_given_to_others(controller: Controller) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    old = reconciling._SINCE - timedelta(hours=1)
    _type(session, "two", created_at=old)
    _type(
        session,
        "three",
        created_at=old,
        settled_at=timezone.now(),
        body=None,
        failure_code="REVOKED",
    )
    _type(session, "four", created_at=old)
    welcome, _ = greeting.hello(controller.id, make_hello(_summary(session.id, applied=2)))
    _type(session, "five")
    assert _sent(controller, welcome.epoch) == [(3, b"four"), (4, b"five")]


def test_without_a_restore_nothing_moves_and_nothing_is_on_record(controller: Controller) -> None:
    session = make_session(controller, input_seq=1, input_acked_seq=1)
    _type(session, "two", sent_epoch=4)
    _type(session, "three")
    welcome, _ = greeting.hello(controller.id, make_hello(_summary(session.id, applied=2)))
    assert _sent(controller, welcome.epoch) == [(2, b"two"), (3, b"three")]
    assert set(AuditEvent.objects.values_list("action", flat=True)) == {"controller.connect"}


@pytest.mark.parametrize(
    ("state", "stored", "pipes", "kind"),
    [
        ("running", "RUNNING", False, "interactive"),
        ("running", "RUNNING", True, "job"),
        ("done", "SENT", False, "interactive"),
    ],
)
def test_a_session_from_after_the_backup_is_adopted(
    controller: Controller, state: Any, stored: str, pipes: bool, kind: str
) -> None:
    session_id = uuid4()
    welcome, _ = greeting.hello(
        controller.id, make_hello(_summary(session_id, applied=2, state=state, pipes=pipes))
    )
    session = CommandSession.objects.get(id=session_id)
    assert (session.state, session.kind, session.input_seq, session.project_id) == (
        stored,
        kind,
        2,
        controller.project_id,
    )
    assert session.notes == [restored.ADOPTED_NOTE]
    assert [(d.action, len(d.expected)) for d in welcome.sessions] == [
        ("continue", 2 if pipes else 1)
    ]
    assert AuditEvent.objects.get(action="session.adopt").session_id == session_id


def test_no_more_sessions_are_adopted_than_a_host_may_bring_along(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restored, "MAX_ADOPTED", 2)
    known = make_session(controller)
    welcome, _ = greeting.hello(
        controller.id, make_hello(*[_summary(uuid4()) for _ in range(3)], _summary(known.id))
    )
    assert [d.action for d in welcome.sessions] == [
        "continue",
        "terminate",
        "terminate",
        "continue",
    ]
    assert AuditEvent.objects.filter(action="session.refuse_unknown").count() == 2


@pytest.mark.parametrize("odd", ["no-uuid", str(uuid4()).upper()])
def test_what_no_server_has_named_is_not_adopted(controller: Controller, odd: str) -> None:
    welcome, _ = greeting.hello(controller.id, make_hello(_summary(odd)))
    assert [d.action for d in welcome.sessions] == ["terminate"]
    assert CommandSession.objects.count() == 0


@pytest.mark.parametrize(
    ("said", "least"), [({"epoch": 9}, 10), ({"last_cmd_seq": 7}, 4 + restored.EPOCHS_SKIPPED)]
)
def test_the_epoch_after_a_restore_is_one_the_host_never_had(
    controller: Controller, said: dict[str, int], least: int
) -> None:
    welcome, _ = greeting.hello(controller.id, make_hello(**said))
    controller.refresh_from_db()
    assert welcome.epoch >= least
    assert controller.epoch == welcome.epoch
    assert AuditEvent.objects.filter(action="controller.restored").count() == 1


def test_commands_after_a_restore_get_numbers_the_host_has_not_seen(controller: Controller) -> None:
    Controller.objects.filter(id=controller.id).update(last_command_seq=2)
    greeting.hello(controller.id, make_hello(last_cmd_seq=7))
    assert outbox.allocate_seq(controller.id) == 8


def test_a_host_that_claims_the_impossible_is_not_believed(controller: Controller) -> None:
    session = make_session(controller, input_seq=1)
    welcome, _ = greeting.hello(
        controller.id,
        make_hello(_summary(session.id, applied=2**62), last_cmd_seq=2**62, epoch=2**62),
    )
    session.refresh_from_db()
    controller.refresh_from_db()
    assert (session.input_seq, controller.last_command_seq) == (1, 0)
    assert welcome.epoch < 2**40


@pytest.mark.parametrize("state", [SessionState.PENDING, SessionState.SENT])
def test_a_start_the_host_has_seen_is_asked_after_and_not_sent_anew(
    controller: Controller, state: SessionState
) -> None:
    session = make_session(controller, state)
    start = StartInteractiveCmd(seq=5, session_id=str(session.id), command="cat")
    expires_at = timezone.now() + timedelta(seconds=30)
    outbox.enqueue(
        controller_id=controller.id, session_id=session.id, message=start, expires_at=expires_at
    )
    sent = 4 if state == SessionState.SENT else None
    old = reconciling._SINCE - timedelta(hours=1)
    ControllerCommand.objects.update(created_at=old, sent_epoch=sent)
    welcome, _ = greeting.hello(controller.id, make_hello(last_cmd_seq=5))
    (taken,), ended = take_commands(controller.id, welcome.epoch)
    assert isinstance(taken, StartInteractiveCmd)
    assert (taken.ttl_seconds, ended) == (0.0, [])


def test_a_session_that_only_an_older_database_still_has_says_so(controller: Controller) -> None:
    session = make_session(controller)
    greeting.hello(controller.id, make_hello(last_cmd_seq=7))
    session.refresh_from_db()
    assert session.notes == [restored.FORGOTTEN_NOTE]


def test_what_was_released_is_told_apart_from_what_a_dead_holder_lost(
    controller: Controller,
) -> None:
    living, dead = (
        make_session(controller, stdout_next_offset=3),
        make_session(controller, stdout_next_offset=3),
    )
    gone = SessionSummary(
        session_id=str(dead.id),
        state="done",
        streams=[StreamPosition(stream="stdout", first_offset=9, next_offset=9)],
        input_seq=0,
    )
    message = make_hello(_summary(living.id, first=7), gone)
    welcome, _ = greeting.hello(controller.id, message)
    assert restored.released_of(message, welcome) == {(str(living.id), "stdout"): 7}


def test_a_connection_is_not_given_a_second_command_under_an_old_number(
    controller: Controller,
) -> None:
    session = make_session(controller)
    _type(session, "again")
    with pytest.raises(DatabaseRestored):
        take_commands(controller.id, 4, sent_up_to=1)
    assert ControllerCommand.objects.get().sent_epoch is None
    assert len(take_commands(controller.id, 4, sent_up_to=0)[0]) == 1
