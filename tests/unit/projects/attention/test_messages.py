"""Messages that are due: each target in its turn, and only those that may be told now."""

from datetime import timedelta

import pytest
from django.utils import timezone

from projects.attention.messages import due_letters, has_due_messages
from projects.attention.targets import target_save
from projects.attention.telling import message_of
from projects.models import AttentionMessage, AttentionTarget, Controller
from tests.support.rows import make_controller

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
    first, second = due_letters()
    assert (first.target_id, second.target_id) == (many.id, few.id)
    assert due_letters([first]) == [second]


def test_a_project_with_slow_targets_takes_no_place_of_another(controller: Controller) -> None:
    for number in range(12):
        _wait(_target(controller, f"slow-{number}"), 2, minutes=30)
    slow = due_letters()
    assert len(slow) == 8
    quick = _target(make_controller("other"), "quick")
    _wait(quick, 1, minutes=1)
    assert [letter.target_id for letter in due_letters(slow)] == [quick.id]


def test_what_failed_before_leaves_places_for_what_is_new(controller: Controller) -> None:
    for number in range(8):
        _wait(_target(controller, f"away-{number}"), 1, minutes=30)
    AttentionMessage.objects.update(attempts=3)
    new = _target(controller, "new")
    _wait(new, 1, minutes=1)
    letters = due_letters()
    assert [letter.attempts for letter in letters] == [3, 3, 3, 3, 0]
    assert letters[-1].target_id == new.id


def test_a_target_that_was_switched_off_is_told_nothing_more(controller: Controller) -> None:
    target = _target(controller, "ops")
    _wait(target, 2, minutes=1)
    AttentionTarget.objects.update(is_enabled=False)
    assert (has_due_messages(), due_letters()) == (False, [])
    AttentionTarget.objects.update(is_enabled=True)
    assert has_due_messages()
