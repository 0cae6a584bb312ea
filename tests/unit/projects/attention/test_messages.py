"""Messages that are due: each target in its turn, and only those that may be told now."""

import asyncio
import json
from datetime import timedelta
from importlib import import_module
from typing import Any
from unittest.mock import Mock

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core import mail
from django.core.management import call_command
from django.utils import timezone

from projects.attention import messages
from projects.attention.messages import (
    TooManyWaiting,
    due_letters,
    has_due_messages,
    record,
    send_again,
)
from projects.attention.sending import SendResult, send
from projects.attention.targets import Way, target_save
from projects.attention.telling import message_of
from projects.models import AttentionEvent, AttentionMessage, AttentionTarget, Controller
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db


def _target(host: Controller, name: str, way: str = Way.WEBHOOK) -> AttentionTarget:
    target = AttentionTarget(project=host.project, name=name, way=way)
    return _aim(target, "https://example.com/ops")


def _aim(target: AttentionTarget, address: str) -> AttentionTarget:
    target_save(target, address=address, key=None, actor="test")
    return target


def _wait(target: AttentionTarget, count: int, minutes: int) -> None:
    rows = [message_of(target, "taken_over", []) for _ in range(count)]
    for row in rows:
        row.due_at = timezone.now() - timedelta(minutes=minutes)
    AttentionMessage.objects.bulk_create(rows)


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


# ---- dead letters --------------------------------------------------------------------------------


def _give_up(target: AttentionTarget, count: int) -> None:
    _wait(target, count, minutes=1)
    of_target = AttentionMessage.objects.filter(target=target)
    of_target.update(due_at=None, dead_at=timezone.now(), attempts=30)


def test_dead_letters_are_sent_again_as_far_as_there_is_room(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(messages, "MOST_WAITING", 3)
    many, few = _target(controller, "many"), _target(controller, "few")
    _give_up(many, 5)
    _give_up(few, 1)
    _wait(many, 1, minutes=1)
    call_command("send_again", controller.project.name)
    said = capsys.readouterr().out
    assert "sent again: 3\n" in said
    assert "no room yet: 3\n" in said
    dead = AttentionMessage.objects.filter(dead_at__isnull=False)
    oldest_left = dead.earliest("created_at")
    sent = many.messages.filter(due_at__isnull=False)
    assert sent.filter(created_at__lt=oldest_left.created_at).count() == 2
    with pytest.raises(TooManyWaiting):
        send_again(oldest_left, actor="admin:ada")
    assert (sent.count(), dead.count()) == (3, 3)


def test_a_letter_that_is_sent_again_is_tried_like_a_new_one(controller: Controller) -> None:
    _give_up(_target(controller, "ops"), 1)
    assert send_again(AttentionMessage.objects.get(), actor="admin:ada")
    [letter] = due_letters()
    record(letter, SendResult("the answer was 500"))
    due_at = AttentionMessage.objects.get().due_at
    assert due_at is not None
    assert due_at < timezone.now() + timedelta(seconds=7)


# ---- the target as it is when a message is sent --------------------------------------------------


def _body() -> Any:
    [letter] = due_letters()
    return json.loads(letter.body)


def _stored() -> str:
    return str(list(AttentionMessage.objects.values()))


def test_a_topic_is_in_no_row_and_what_waits_goes_to_the_newest(controller: Controller) -> None:
    target = _target(controller, "phone", Way.NTFY)
    _aim(target, "https://example.com/zarniwoop")
    _wait(target, 1, minutes=1)
    assert "zarniwoop" not in _stored()
    assert _body()["topic"] == "zarniwoop"
    _aim(target, "https://example.com/vogon")
    assert _body()["topic"] == "vogon"
    AttentionMessage.objects.update(due_at=None, dead_at=timezone.now())
    assert send_again(AttentionMessage.objects.get(), actor="admin:ada")
    assert _body()["topic"] == "vogon"


def test_what_waited_without_the_key_goes_to_the_target_set_anew(
    controller: Controller, settings: Any
) -> None:
    target = _target(controller, "phone", Way.NTFY)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    _wait(target, 1, minutes=1)
    _aim(target, "https://example.com/vogon")
    assert _body()["topic"] == "vogon"


def test_what_waits_has_the_form_of_the_way_that_the_target_gets(controller: Controller) -> None:
    target = _target(controller, "ops")
    _wait(target, 1, minutes=1)
    fields = {"webhook": {"type", "data"}, "slack": {"text"}, "email": {"subject", "text"}}
    for way, names in fields.items():
        target.way = Way(way)
        _aim(target, "ops@example.com" if way == "email" else "https://example.com/ops")
        assert _body().keys() == names
    [letter] = due_letters()
    assert asyncio.run(send(letter)) == SendResult()
    assert "A keyboard was taken over" in mail.outbox[0].subject


def test_the_migration_takes_topics_out_and_what_waits_is_told(controller: Controller) -> None:
    target = _target(controller, "phone", Way.NTFY)
    _wait(target, 2, minutes=1)
    event = AttentionEvent.objects.create(
        cause="one", kind="taken_over", project=controller.project, controller=controller
    )
    earlier, kept = AttentionMessage.objects.order_by("id")
    earlier.events.add(event)
    earlier.body = json.dumps({"topic": "ops", "title": "a", "message": "b", "click": ""})
    earlier.due_at -= timedelta(minutes=1)
    earlier.save()
    import_module("projects.migrations.0037_messages_without_topics").forget_forms(apps, Mock())
    assert "topic" not in _stored()
    assert AttentionMessage.objects.get(id=kept.id).body == kept.body
    assert _body()["message"] == f"A keyboard was taken over · on {controller.name}"
