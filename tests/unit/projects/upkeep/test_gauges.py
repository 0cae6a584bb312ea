"""The figures of the metrics count what is there now, and are none while nobody can count."""

import math
from datetime import timedelta

import pytest
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects.attention.targets import Way, target_save
from projects.attention.telling import message_of
from projects.models import (
    AttentionEvent,
    AttentionMessage,
    AttentionTarget,
    Controller,
    ControllerCommand,
)
from projects.process import metrics
from projects.upkeep import gauges
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db
_AGES = (300, 60, 900)


def _command(host: Controller, seq: int, seconds: int, *, is_settled: bool) -> None:
    now, session = timezone.now(), make_session(host)
    about = {"controller": host, "session": session, "body": b"{}", "type": "SEND_INPUT"}
    command = ControllerCommand.objects.create(
        seq=seq, settled_at=now if is_settled else None, **about
    )
    created = {"created_at": now - timedelta(seconds=seconds)}
    ControllerCommand.objects.filter(pk=command.pk).update(**created)


def test_only_open_commands_count_and_the_oldest_says_their_age(controller: Controller) -> None:
    for seq, seconds in enumerate(_AGES):
        _command(controller, seq, seconds, is_settled=seconds == max(_AGES))
    gauges.take()
    assert metrics.OUTBOX_COMMANDS._value.get() == 2
    assert 300 <= metrics.OUTBOX_AGE._value.get() < 900
    ControllerCommand.objects.update(settled_at=timezone.now())
    gauges.take()
    assert (metrics.OUTBOX_COMMANDS._value.get(), metrics.OUTBOX_AGE._value.get()) == (0, 0)


def test_active_sessions_count_by_state_and_hosts_while_their_lease_runs(
    controller: Controller,
) -> None:
    make_controller("away", lease_expires_at=timezone.now() - timedelta(hours=1))
    make_controller("new")
    for state in (SessionState.RUNNING, SessionState.RUNNING, SessionState.EXITED):
        make_session(controller, state)
    gauges.take()
    counted = {state: metrics.SESSIONS.labels(state)._value.get() for state in ("RUNNING", "SENT")}
    assert counted == {"RUNNING": 2, "SENT": 0}
    assert metrics.CONTROLLERS_ONLINE._value.get() == 1


def test_events_and_messages_count_by_what_is_left_to_do(controller: Controller) -> None:
    now = timezone.now()
    target = AttentionTarget(project=controller.project, name="ops", way=Way.WEBHOOK)
    target_save(target, address="https://example.com/ops", key=None, actor="test")
    for cause, resolved_at in (("a", None), ("b", None), ("c", now)):
        AttentionEvent.objects.create(
            project=controller.project, cause=cause, kind="taken_over", resolved_at=resolved_at
        )
    waiting, dead, sent = (message_of(target, "taken_over", []) for _ in range(3))
    waiting.due_at, dead.due_at, sent.due_at = now, None, None
    dead.dead_at, sent.sent_at = now, now
    AttentionMessage.objects.bulk_create([waiting, dead, sent])
    gauges.take()
    figures = (metrics.ATTENTION_OPEN, metrics.ATTENTION_WAITING, metrics.ATTENTION_DEAD)
    assert [figure._value.get() for figure in figures] == [2, 1, 1]


def test_old_figures_do_not_stand_for_new_ones(controller: Controller) -> None:
    make_session(controller)
    gauges.take()
    gauges.forget()
    figures = (
        metrics.SESSIONS.labels("RUNNING"),
        metrics.OUTBOX_COMMANDS,
        metrics.OUTBOX_AGE,
        metrics.CONTROLLERS_ONLINE,
        metrics.ATTENTION_OPEN,
        metrics.ATTENTION_WAITING,
        metrics.ATTENTION_DEAD,
    )
    assert all(math.isnan(figure._value.get()) for figure in figures)
    gauges.take()
    assert not any(math.isnan(figure._value.get()) for figure in figures)
