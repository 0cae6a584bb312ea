"""Messages that are due: each target in its turn, and only those that may be told now."""

from datetime import timedelta

import pytest
from django.utils import timezone

from projects.attention.messages import due_letters, has_due_messages
from projects.attention.targets import target_save
from projects.attention.telling import message_of
from projects.models import AttentionMessage, AttentionTarget, Controller

pytestmark = pytest.mark.django_db


def _target(host: Controller, name: str) -> AttentionTarget:
    target = AttentionTarget(project=host.project, name=name, way="webhook")
    target_save(target, address="https://example.com/ops", key=None, actor="test")
    return target


def _wait(target: AttentionTarget, count: int, minutes: int) -> None:
    messages = [message_of(target, "taken_over", []) for _ in range(count)]
    for message in messages:
        message.due_at = timezone.now() - timedelta(minutes=minutes)
    AttentionMessage.objects.bulk_create(messages)


def test_a_target_of_which_many_wait_takes_one_place(controller: Controller) -> None:
    many, few = _target(controller, "many"), _target(controller, "few")
    _wait(many, 100, minutes=20)
    _wait(few, 1, minutes=1)
    assert [letter.target_id for letter in due_letters((), 8)] == [many.id, few.id]
    assert [letter.target_id for letter in due_letters((), 1)] == [many.id]
    assert [letter.target_id for letter in due_letters((many.id,), 8)] == [few.id]


def test_a_target_that_was_switched_off_is_told_nothing_more(controller: Controller) -> None:
    target = _target(controller, "ops")
    _wait(target, 2, minutes=1)
    AttentionTarget.objects.update(is_enabled=False)
    assert (has_due_messages(), due_letters((), 8)) == (False, [])
    AttentionTarget.objects.update(is_enabled=True)
    assert has_due_messages()
