"""Events and messages are deleted once they are over and were kept for long enough."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects.attention.messages import forget_old
from projects.attention.targets import Way, target_save
from projects.attention.telling import message_of
from projects.models import AttentionEvent, AttentionMessage, AttentionTarget, Controller
from projects.storage import clock

pytestmark = pytest.mark.django_db
_KEPT = 3600
_OLD, _YOUNG = timedelta(seconds=_KEPT + 60), timedelta(seconds=_KEPT - 60)


@pytest.fixture(autouse=True)
def _an_hour(settings: Any) -> None:
    settings.ATTENTION_RETENTION_SECONDS = _KEPT


def _event(host: Controller, cause: str, age: timedelta, **fields: Any) -> AttentionEvent:
    raised = timezone.now() - age
    return AttentionEvent.objects.create(
        project=host.project,
        cause=cause,
        kind="taken_over",
        raised_at=raised,
        **fields,
    )


def _message(target: AttentionTarget, age: timedelta, **fields: Any) -> AttentionMessage:
    made = message_of(target, "taken_over", [])
    made.save()
    columns = {"created_at": timezone.now() - age, "due_at": None, **fields}
    AttentionMessage.objects.filter(id=made.id).update(**columns)
    return made


@pytest.fixture
def target(controller: Controller) -> AttentionTarget:
    made = AttentionTarget(project=controller.project, name="ops", way=Way.WEBHOOK)
    target_save(made, address="https://example.com/ops", key=None, actor="test")
    return made


def _causes() -> set[str]:
    return set(AttentionEvent.objects.values_list("cause", flat=True))


def test_an_event_is_forgotten_once_it_is_over_told_and_old(controller: Controller) -> None:
    now = timezone.now()
    _event(controller, "over", _OLD, resolved_at=now)
    _event(controller, "open", _OLD)
    _event(controller, "to be told", _OLD, resolved_at=now, due_at=now)
    _event(controller, "young", _YOUNG, resolved_at=now)
    forget_old()
    assert _causes() == {"open", "to be told", "young"}


def test_a_message_is_forgotten_once_it_waits_no_more(target: AttentionTarget) -> None:
    _message(target, _OLD, sent_at=timezone.now())
    _message(target, _OLD, dead_at=timezone.now())
    kept = {_message(target, _OLD, due_at=timezone.now()).id, _message(target, _YOUNG).id}
    forget_old()
    assert set(AttentionMessage.objects.values_list("id", flat=True)) == kept


@pytest.mark.parametrize("is_for_good", [True, False])
def test_nothing_is_forgotten_for_good_or_after_a_jump_of_the_clock(
    controller: Controller, settings: Any, monkeypatch: pytest.MonkeyPatch, is_for_good: bool
) -> None:
    _event(controller, "over", _OLD, resolved_at=timezone.now())
    if is_for_good:
        settings.ATTENTION_RETENTION_SECONDS = 0
    else:
        monkeypatch.setattr(clock.STEADINESS, "_since", clock.time.monotonic())
    forget_old()
    assert _causes() == {"over"}
