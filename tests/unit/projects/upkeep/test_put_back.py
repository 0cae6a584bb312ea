"""What was written while the clock was an hour ahead is put right once the clock is put back."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.utils import timezone

from controller_client.protocol.messages import StartInteractiveCmd
from projects.attention import messages, telling
from projects.attention.events import Cause, attention_raise, attention_snooze
from projects.attention.targets import Way, target_save
from projects.conf import conf
from projects.enrolment.codes import CODE_MINUTES, enrolment_code_create
from projects.models import (
    Approval,
    AttentionEvent,
    AttentionKind,
    AttentionMessage,
    AttentionTarget,
    CommandSession,
    Controller,
    ControllerCommand,
    ControllerCredential,
    EnrolmentCode,
    FileRequest,
    HeldKeyboard,
    Project,
)
from projects.sessions import outbox
from projects.storage import clock
from projects.upkeep.put_back import PutBack, moments_put_back
from tests.support.rows import make_approval, make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


@pytest.fixture
def controller() -> Controller:
    """A host that is online for as long as a lease lasts."""
    return make_controller(lease_expires_at=clock.now() + timedelta(seconds=conf.lease_seconds))


@contextmanager
def _an_hour_ahead() -> Iterator[None]:
    before = clock._offset.seconds
    clock._offset.seconds = before + HOUR.total_seconds()
    try:
        yield
    finally:
        clock._offset.seconds = before


def _lies_within(moment: datetime | None, longest: timedelta) -> bool:
    assert moment is not None
    return moment <= clock.now() + longest + timedelta(seconds=1)


def _raise(host: Controller) -> AttentionEvent:
    Project.objects.update(attention_seconds={AttentionKind.TAKEN_OVER: 5})
    session = make_session(host)
    with transaction.atomic():
        attention_raise(
            Cause(
                kind=AttentionKind.TAKEN_OVER,
                key="one",
                project_id=host.project_id,
                session_id=session.id,
            )
        )
    return AttentionEvent.objects.get()


def _message(host: Controller) -> AttentionMessage:
    target = AttentionTarget(project=host.project, name="ops", way=Way.WEBHOOK)
    target_save(target, address="https://example.com/ops", key=None, actor="test")
    message = telling.message_of(target, AttentionKind.TAKEN_OVER, [])
    message.save(force_insert=True)
    return message


def _start(host: Controller) -> None:
    session = make_session(host)
    with transaction.atomic():
        outbox.enqueue(
            controller_id=host.id,
            session_id=session.id,
            message=StartInteractiveCmd(
                seq=outbox.allocate_seq(host.id), session_id=str(session.id), command="cat"
            ),
            expires_at=clock.now() + timedelta(seconds=30),
        )


def test_a_code_is_good_for_no_longer_than_it_was_made_for(controller: Controller) -> None:
    with _an_hour_ahead():
        enrolment_code_create(project=controller.project, name="web-1")
    assert moments_put_back() == 1
    code = EnrolmentCode.objects.get()
    assert _lies_within(code.expires_at, timedelta(minutes=CODE_MINUTES))
    assert code.expires_at - code.created_at == timedelta(minutes=CODE_MINUTES)


def test_a_start_that_was_not_sent_waits_no_longer_for_its_host(controller: Controller) -> None:
    with _an_hour_ahead():
        _start(controller)
    assert moments_put_back() == 1
    assert _lies_within(ControllerCommand.objects.get().expires_at, timedelta(seconds=30))


def test_people_are_told_in_time(controller: Controller) -> None:
    with _an_hour_ahead():
        _raise(controller)
        _message(controller)
    assert not messages.has_due_messages()
    assert moments_put_back() == 2
    assert _lies_within(AttentionEvent.objects.get().due_at, timedelta(seconds=5))
    assert messages.has_due_messages()


def test_a_rest_of_an_event_that_began_ahead_ends_with_it(controller: Controller) -> None:
    with _an_hour_ahead():
        event = _raise(controller)
        assert attention_snooze(event, timedelta(minutes=15), actor="admin:ada")
    moments_put_back()
    event.refresh_from_db()
    assert _lies_within(event.due_at, timedelta(minutes=15))
    assert event.snoozed_until == event.due_at


def test_the_next_attempt_at_a_target_is_no_further_than_the_longest_pause(
    controller: Controller,
) -> None:
    message = _message(controller)
    longest = timedelta(seconds=messages.LONGEST_PAUSE_SECONDS)
    AttentionMessage.objects.update(due_at=clock.now() + HOUR + longest)
    moments_put_back()
    message.refresh_from_db()
    assert _lies_within(message.due_at, longest)


@pytest.mark.parametrize("answer", [Approval.Answer.PENDING, Approval.Answer.APPROVED])
def test_a_question_is_open_and_an_answer_good_for_its_time(
    controller: Controller, answer: str
) -> None:
    longest = timedelta(seconds=conf.approval_seconds)
    make_approval(controller.project, answer=answer, expires_at=clock.now() + HOUR + longest)
    assert moments_put_back() == 1
    assert _lies_within(Approval.objects.get().expires_at, longest)


def test_a_host_that_is_gone_is_online_for_no_longer_than_a_lease(controller: Controller) -> None:
    lease = timedelta(seconds=conf.lease_seconds)
    Controller.objects.update(lease_expires_at=clock.now() + HOUR + lease)
    assert moments_put_back() == 1
    assert _lies_within(Controller.objects.get().lease_expires_at, lease)


def test_an_old_credential_overlaps_the_new_one_for_no_longer(controller: Controller) -> None:
    overlap = ControllerCredential.OVERLAP
    ControllerCredential.objects.create(
        controller=controller, key_id="k", digest="d", expires_at=clock.now() + HOUR + overlap
    )
    assert moments_put_back() == 1
    assert _lies_within(ControllerCredential.objects.get().expires_at, overlap)


def test_an_unused_session_and_a_keyboard_without_browser_are_found(
    controller: Controller,
) -> None:
    ahead = clock.now() + HOUR
    session = make_session(controller, touched_at=ahead)
    HeldKeyboard.objects.create(session=session, operator="ada", seen_at=ahead, typed_at=ahead)
    assert moments_put_back() == 3
    keyboard = HeldKeyboard.objects.get()
    touched_at = CommandSession.objects.get().touched_at
    assert all(
        _lies_within(moment, timedelta())
        for moment in (touched_at, keyboard.seen_at, keyboard.typed_at)
    )


def test_a_question_about_a_file_is_forgotten(controller: Controller) -> None:
    FileRequest.objects.create(
        id=uuid4(), controller=controller, body=b"", expires_at=clock.now() + 2 * HOUR
    )
    moments_put_back()
    assert _lies_within(FileRequest.objects.get().expires_at, HOUR)


def test_what_was_written_by_a_right_clock_stays(controller: Controller) -> None:
    event = _raise(controller)
    attention_snooze(event, timedelta(hours=8), actor="admin:ada")
    _message(controller)
    _start(controller)
    enrolment_code_create(project=controller.project, name="web-1", minutes=60)
    make_approval(
        controller.project,
        expires_at=clock.now() + timedelta(seconds=conf.approval_seconds),
    )
    Controller.objects.update(lease_expires_at=clock.now() + timedelta(seconds=conf.lease_seconds))
    assert moments_put_back() == 0


def test_a_clock_of_this_process_alone_takes_no_lease(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock._offset, "seconds", -HOUR.total_seconds())
    # SQLite has no clock of its own: what this process believes is the time.
    assert moments_put_back() == (connection.vendor == "sqlite")


def test_a_round_comes_after_a_jump_or_a_while(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(put_back: PutBack) -> int:
        Controller.objects.update(lease_expires_at=timezone.now() + 2 * HOUR)
        return put_back.moments()

    step: list[Any] = [0.0]
    monkeypatch.setattr(clock.STEADINESS, "step_of_last", lambda seconds: step[0])
    put_back = PutBack()
    assert [look(put_back), look(put_back)] == [1, 0]
    step[0] = -HOUR.total_seconds()
    assert look(put_back) == 1
