"""Events that are due become one message for each target that wants them."""

import asyncio
import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.db import transaction
from django.test import override_settings
from django.utils import timezone

from projects.attention import messages, sending, telling
from projects.attention.events import Cause, attention_raise, attention_resolve, attention_snooze
from projects.attention.targets import UnusableTarget, Way, target_save
from projects.models import (
    AttentionEvent,
    AttentionKind,
    AttentionMessage,
    AttentionTarget,
    Controller,
    Project,
)
from projects.models.attention_kinds import TELLABLE
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def wanting(controller: Controller) -> Controller:
    """A host whose project wants everything at once."""
    Project.objects.update(attention_seconds=dict.fromkeys(TELLABLE, 0))
    return controller


def _target(host: Controller, way: Way = Way.WEBHOOK, **fields: object) -> AttentionTarget:
    target = AttentionTarget(project=host.project, name=f"t{uuid4().hex}", way=way, **fields)
    address = "ops@example.com" if way == Way.EMAIL else "https://example.com/ops"
    target_save(target, address=address, key=None, actor="test")
    return target


def _raise(host: Controller, kind: AttentionKind = AttentionKind.TAKEN_OVER, key: str = "") -> str:
    session = make_session(host, terminal_prompt="Password for ada:", slot=None)
    key = key or str(session.id)
    detail = {"input_seq": 0, "asks_for": "secret"}
    cause = Cause(
        kind=kind,
        key=key,
        project_id=host.project_id,
        controller_id=host.id,
        session_id=session.id,
        wanted="the password of web-17",
        detail=detail,
    )
    with transaction.atomic():
        attention_raise(cause)
    return key


def _bodies() -> list[str]:
    telling.messages_write()
    return list(AttentionMessage.objects.order_by("created_at").values_list("body", flat=True))


def _sent_bodies() -> list[str]:
    telling.messages_write()
    rows = AttentionMessage.objects.select_related("target__project")
    return [messages.letter_of(message).body for message in rows]


def test_events_of_a_kind_are_one_message_with_links(wanting: Controller) -> None:
    _target(wanting)
    for _ in range(3):
        _raise(wanting)
    with override_settings(PUBLIC_URL="https://holdline.example"):
        [body] = _bodies()
    data = json.loads(body)["data"]
    assert (data["count"], data["title"]) == (3, "3 keyboards were taken over")
    assert data["events"][0]["link"].startswith("https://holdline.example/attention/")
    assert not telling.has_due_events()


def test_forty_hosts_that_go_away_are_one_message(wanting: Controller) -> None:
    _target(wanting)
    for number in range(40):
        host = make_controller(f"h{number}", project=wanting.project)
        _raise(host, AttentionKind.HOST_AWAY)
    assert _bodies() == []
    # The first of them is due; the others are not, and come along.
    first = AttentionEvent.objects.earliest("due_at")
    AttentionEvent.objects.filter(id=first.id).update(due_at=timezone.now())
    [body] = _bodies()
    assert json.loads(body)["data"]["count"] == 40


def test_a_target_is_told_only_what_it_wants(wanting: Controller) -> None:
    target = _target(wanting, kinds=["run_ended"])
    _target(wanting, is_enabled=False)
    _raise(wanting)
    assert _bodies() == []
    AttentionTarget.objects.filter(id=target.id).update(kinds=["taken_over"])
    _raise(wanting)
    assert len(_bodies()) == 1


def test_an_end_is_told_to_those_who_were_told_of_the_event(wanting: Controller) -> None:
    target = _target(wanting)
    key = _raise(wanting)
    _bodies()
    _target(wanting)
    attention_resolve(key, "handed_back")
    _bodies()
    [ended] = AttentionMessage.objects.filter(kind="resolved")
    assert ended.target == target


def test_what_was_settled_before_it_was_due_is_not_told(wanting: Controller) -> None:
    _target(wanting)
    attention_resolve(_raise(wanting), "handed_back")
    assert _bodies() == []


@pytest.mark.parametrize("way", list(Way))
def test_words_of_prompts_and_callers_are_sent_only_if_allowed(
    wanting: Controller, way: Way
) -> None:
    target = _target(wanting, way)
    _raise(wanting, AttentionKind.SECRET_WANTED)
    [without] = _sent_bodies()
    assert "for ada" not in without
    assert "web-17" not in without
    target.has_texts = True
    target.save()
    _raise(wanting, AttentionKind.SECRET_WANTED)
    assert sorted("web-17" in body for body in _sent_bodies()) == [False, True]
    # What waits is sent to the target as it is when it is sent.
    target.has_texts = False
    target.save()
    assert not any("web-17" in body for body in _sent_bodies())


def test_a_snoozed_event_is_told_when_the_snooze_is_over(wanting: Controller) -> None:
    _target(wanting)
    _raise(wanting)
    soon = timezone.now() + timedelta(minutes=5)
    AttentionEvent.objects.update(snoozed_until=soon)
    assert _bodies() == []
    AttentionEvent.objects.update(snoozed_until=timezone.now())
    assert len(_bodies()) == 1


def test_an_end_does_not_wait_for_the_snooze_of_its_event(wanting: Controller) -> None:
    _target(wanting)
    key = _raise(wanting)
    assert len(_bodies()) == 1
    assert attention_snooze(AttentionEvent.objects.get(), timedelta(hours=8), actor="admin:ada")
    attention_resolve(key, "handed_back")
    assert len(_bodies()) == 2


def test_a_cause_that_comes_and_goes_is_no_storm_of_messages(wanting: Controller) -> None:
    _target(wanting)
    key = _raise(wanting)
    for _ in range(9):
        _bodies()
        attention_resolve(key, "handed_back")
        _bodies()
        _raise(wanting, key=key)
    # It began and was over, once each. Now it is open, and is told again when its rest is over.
    assert len(_bodies()) == 2
    assert AttentionEvent.objects.get().due_at is not None


def test_a_target_that_takes_nothing_has_a_bounded_queue(
    wanting: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MOST_WAITING", 1)
    _target(wanting)
    for _ in range(2):
        _raise(wanting)
        _bodies()
    assert AttentionMessage.objects.filter(dead_at__isnull=False).count() == 1


@pytest.mark.parametrize(
    "address",
    ["", "ftp://example.com", "https://user:pw@example.com/", "https://", "https://a b/"],
)
def test_an_address_that_is_no_target_is_refused(wanting: Controller, address: str) -> None:
    target = AttentionTarget(project=wanting.project, name="x", way=Way.WEBHOOK)
    with pytest.raises(UnusableTarget):
        target_save(target, address=address, key=None, actor="test")


def test_address_and_key_are_sealed_and_not_in_the_audit_log(wanting: Controller) -> None:
    from projects.models import AuditEvent

    target = AttentionTarget(project=wanting.project, name="x", way=Way.WEBHOOK)
    key = target_save(target, address="https://example.com/T0KEN", key=None, actor="test")
    assert key is not None
    stored = bytes(target.sealed_address) + bytes(target.sealed_key or b"")
    audited = str(list(AuditEvent.objects.values_list("detail", flat=True)))
    for secret in ("T0KEN", key):
        assert secret.encode() not in stored
        assert secret not in audited


def test_a_target_whose_key_is_gone_keeps_nothing_from_the_others(
    wanting: Controller, settings: Any
) -> None:
    unread = _target(wanting)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
    other = _target(wanting)
    _raise(wanting)
    assert telling.messages_write() == 2
    letters = {letter.target_id: letter for letter in messages.due_letters()}
    assert letters[other.id].to.address == "https://example.com/ops"
    failed = asyncio.run(sending.send(letters[unread.id]))
    assert "no key for the address" in failed.error
