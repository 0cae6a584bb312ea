"""A connection sends every unsettled command once, in order, and none that came too late."""

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from datetime import timedelta

import pytest
from cryptography.fernet import Fernet
from django.db import connection, transaction
from django.test import override_settings
from django.utils import timezone

from controller_client.protocol.messages import (
    FromServer,
    Resize,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
)
from controller_client.protocol.session_state import SessionState
from projects.link.inbound.commands import COMMANDS_PER_TAKE, take_commands
from projects.models import CommandSession, Controller, ControllerCommand
from projects.sessions import outbox
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller(epoch=1)


def _resize(session: CommandSession) -> int:
    seq = outbox.allocate_seq(session.controller_id)
    message = Resize(seq=seq, session_id=str(session.id), rows=1, cols=1)
    outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    return seq


def _start(session: CommandSession, *, ttl_seconds: float = 30.0) -> None:
    seq = outbox.allocate_seq(session.controller_id)
    message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    expires_at = timezone.now() + timedelta(seconds=ttl_seconds)
    outbox.enqueue(
        controller_id=session.controller_id,
        session_id=session.id,
        message=message,
        expires_at=expires_at,
    )


def test_commands_come_in_order_once_per_connection_under_its_epoch(controller: Controller) -> None:
    session = make_session(controller)
    seqs = [_resize(session) for _ in range(3)]
    messages, ended = take_commands(controller.id, 1)
    assert [(m.seq, m.epoch) for m in messages if isinstance(m, Resize)] == [
        (seq, 1) for seq in seqs
    ]
    assert ended == []
    assert take_commands(controller.id, 1) == ([], [])


@pytest.mark.django_db(transaction=True)
def test_a_command_that_is_being_settled_is_not_sent(controller: Controller) -> None:
    session = make_session(controller)
    with transaction.atomic():
        seq = _resize(session)

    def taken() -> tuple[list[FromServer], list[str]]:
        with closing(connection):
            return take_commands(controller.id, 1)

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            ControllerCommand.objects.filter(seq=seq).update(
                settled_at=timezone.now(), body=None, failure_code="REVOKED"
            )
            taking = threads.submit(taken)
            # It is taken now, or waits for the end of this transaction.
            wait([taking], timeout=0.5)
        assert taking.result() == ([], [])
    settled = ControllerCommand.objects.get(seq=seq)
    assert (settled.sent_epoch, settled.failure_code) == (None, "REVOKED")


def test_a_new_connection_sends_again_what_was_not_settled(controller: Controller) -> None:
    session = make_session(controller)
    first, second = _resize(session), _resize(session)
    take_commands(controller.id, 1)
    ControllerCommand.objects.filter(seq=first).update(settled_at=timezone.now(), body=None)
    Controller.objects.update(epoch=2)
    messages, _ = take_commands(controller.id, 2)
    assert [m.seq for m in messages if isinstance(m, Resize)] == [second]


def test_a_fenced_connection_gets_nothing_and_marks_nothing(controller: Controller) -> None:
    _resize(make_session(controller))
    Controller.objects.update(epoch=2)
    assert take_commands(controller.id, 1) == ([], [])
    assert len(take_commands(controller.id, 2)[0]) == 1


def test_another_controllers_commands_stay_its_own(controller: Controller) -> None:
    _resize(make_session(make_controller("other", epoch=1)))
    assert take_commands(controller.id, 1) == ([], [])


def test_a_long_outbox_is_taken_in_pieces(controller: Controller) -> None:
    session = make_session(controller)
    seqs = [_resize(session) for _ in range(COMMANDS_PER_TAKE + 3)]
    taken = [
        m.seq for _ in range(2) for m in take_commands(controller.id, 1)[0] if isinstance(m, Resize)
    ]
    assert taken == seqs


def test_a_start_hands_its_session_over(controller: Controller) -> None:
    session = make_session(controller, SessionState.PENDING)
    _start(session)
    messages, _ = take_commands(controller.id, 1)
    session.refresh_from_db()
    assert isinstance(messages[0], StartInteractiveCmd)
    assert session.state == "SENT"


def test_a_start_that_is_too_old_is_never_sent_and_its_session_expires(
    controller: Controller,
) -> None:
    session = make_session(controller, SessionState.PENDING)
    _start(session, ttl_seconds=-1)
    assert take_commands(controller.id, 1) == ([], [str(session.id)])
    session.refresh_from_db()
    assert (session.state, session.failure_code) == ("EXPIRED", "EXPIRED")
    command = ControllerCommand.objects.get()
    assert command.body is None
    assert command.settled_at is not None


@pytest.mark.parametrize("ttl_seconds", [-1.0, 30.0])
def test_a_start_that_was_sent_before_is_asked_after_and_not_given_up(
    controller: Controller, ttl_seconds: float
) -> None:
    session = make_session(controller, SessionState.SENT)
    _start(session, ttl_seconds=ttl_seconds)
    (taken,), ended = take_commands(controller.id, 1)
    session.refresh_from_db()
    assert isinstance(taken, StartInteractiveCmd)
    assert (session.state, ended, taken.ttl_seconds) == (
        "SENT",
        [],
        30.0 if ttl_seconds > 0 else 0.0,
    )


@pytest.mark.parametrize(
    ("state", "end"), [(SessionState.PENDING, "EXPIRED"), (SessionState.SENT, "LOST")]
)
def test_a_start_without_its_key_was_not_started_only_if_unsent(
    controller: Controller, state: SessionState, end: str
) -> None:
    session = make_session(controller, state)
    with override_settings(ENCRYPTION_KEYS=[Fernet.generate_key().decode()]):
        _start(session)
    assert take_commands(controller.id, 1) == ([], [str(session.id)])
    session.refresh_from_db()
    assert (session.state, session.failure_code) == (
        end,
        "START_FAILED" if end == "EXPIRED" else "START_LOST",
    )


def test_an_undecryptable_command_is_refused_and_does_not_block_the_rest(
    controller: Controller,
) -> None:
    session = make_session(controller)
    with override_settings(ENCRYPTION_KEYS=[Fernet.generate_key().decode()]):
        seq = outbox.allocate_seq(controller.id)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=1, data=b"x")
        outbox.enqueue(controller_id=controller.id, session_id=session.id, message=message)
    behind = _resize(session)
    messages, _ = take_commands(controller.id, 1)
    assert [m.seq for m in messages if isinstance(m, Resize)] == [behind]
    assert ControllerCommand.objects.get(seq=seq).failure_code == "INPUT_UNCONFIRMED"


def test_a_one_shot_that_was_not_taken_in_time_never_starts(controller: Controller) -> None:
    session = make_session(controller, SessionState.PENDING)
    seq = outbox.allocate_seq(session.controller_id)
    message = RunCommand(seq=seq, session_id=str(session.id), command="sort", input=b"b\na\n")
    outbox.enqueue(
        controller_id=session.controller_id,
        session_id=session.id,
        message=message,
        expires_at=timezone.now() - timedelta(seconds=1),
    )
    assert take_commands(controller.id, 1) == ([], [str(session.id)])
    session.refresh_from_db()
    assert session.state == SessionState.EXPIRED


def test_a_one_shot_is_handed_over_with_its_input(controller: Controller) -> None:
    session = make_session(controller, SessionState.PENDING)
    seq = outbox.allocate_seq(session.controller_id)
    message = RunCommand(seq=seq, session_id=str(session.id), command="sort", input=b"b\na\n")
    outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    (taken,), _ = take_commands(controller.id, 1)
    session.refresh_from_db()
    assert isinstance(taken, RunCommand)
    assert (taken.input, session.state) == (b"b\na\n", SessionState.SENT)
