"""Events are rows of the transaction that raises them, one for each cause."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from projects.attention.events import (
    Cause,
    attention_raise,
    attention_resolve,
    attention_snooze,
)
from projects.models import (
    AttentionEvent,
    AttentionKind,
    AttentionTarget,
    CommandSession,
    Controller,
    Project,
)
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    """A session of a project that wants two kinds of events."""
    wanted = {"taken_over": 5, "run_ended": 0}
    Project.objects.filter(id=controller.project_id).update(attention_seconds=wanted)
    return make_session(controller)


def _cause(
    session: CommandSession, kind: AttentionKind = AttentionKind.TAKEN_OVER, key: str = "one"
) -> Cause:
    return Cause(kind=kind, key=key, project_id=session.project_id, session_id=session.id)


def test_one_cause_is_one_event(session: CommandSession) -> None:
    with transaction.atomic():
        first = attention_raise(_cause(session))
        second = attention_raise(_cause(session))
    event = AttentionEvent.objects.get()
    assert first == second == event.id
    assert event.due_at == event.raised_at + timedelta(seconds=5)
    assert event.path == f"/sessions/{session.id}/"


def test_an_event_is_undone_with_its_cause(session: CommandSession) -> None:
    def fail() -> None:
        with transaction.atomic():
            attention_raise(_cause(session))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert not AttentionEvent.objects.exists()


def test_kinds_that_a_project_does_not_want_are_not_written(session: CommandSession) -> None:
    with transaction.atomic():
        assert attention_raise(_cause(session, AttentionKind.HOST_ALARM)) is None
    assert not AttentionEvent.objects.exists()


def test_an_approval_is_always_written_and_told_to_nobody(session: CommandSession) -> None:
    with transaction.atomic():
        assert attention_raise(_cause(session, AttentionKind.APPROVAL_WANTED))
    event = AttentionEvent.objects.get()
    assert (event.due_at, event.resolved_at) == (None, None)


def test_an_event_ends_once(session: CommandSession) -> None:
    with transaction.atomic():
        attention_raise(_cause(session))
        assert attention_resolve("one", "handed_back", by="admin:ada")
        assert not attention_resolve("one", "ended", by="admin:bob")
    event = AttentionEvent.objects.get()
    assert (event.resolution, event.resolved_by) == ("handed_back", "admin:ada")
    # Nobody was told of the event, so nobody is told of its end.
    assert event.due_at is None


@pytest.mark.parametrize(
    ("wanted", "after"), [({"resolved": 0}, 0), ({"resolved": 90}, 90), ({}, None), (None, None)]
)
def test_an_end_is_due_for_those_who_were_told_if_the_project_wants_it(
    session: CommandSession, wanted: dict[str, float] | None, after: float | None
) -> None:
    with transaction.atomic():
        attention_raise(_cause(session))
    AttentionEvent.objects.update(told_at=session.created_at, due_at=None)
    Project.objects.update(attention_seconds=wanted)
    assert attention_resolve("one", "handed_back")
    event = AttentionEvent.objects.get()
    assert event.resolved_at is not None
    due_at = None if after is None else event.resolved_at + timedelta(seconds=after)
    assert event.due_at == due_at


def test_what_is_over_as_it_happens_is_told_and_never_open(session: CommandSession) -> None:
    with transaction.atomic():
        attention_raise(_cause(session, AttentionKind.RUN_ENDED))
    event = AttentionEvent.objects.get()
    assert event.resolved_at == event.due_at == event.raised_at


# ---- causes that come back -----------------------------------------------------------------------


def _told(controller: Controller, *seconds_ago: float) -> AttentionEvent:
    """The event, of which people were told so many seconds ago."""
    event = AttentionEvent.objects.get()
    new = {"name": "ops", "way": "webhook", "place": "x", "sealed_address": b""}
    target = AttentionTarget.objects.create(project=controller.project, **new)
    now = timezone.now()
    AttentionEvent.objects.update(told_at=now, due_at=None)
    for ago in seconds_ago:
        at = now - timedelta(seconds=ago)
        event.messages.create(target=target, event_count=1, body="", created_at=at)
    return event


@transaction.atomic
def _go_and_come_back(session: CommandSession, **cause: Any) -> AttentionEvent:
    attention_resolve("one", "handed_back", by="admin:ada")
    attention_raise(replace(_cause(session), **cause))
    return AttentionEvent.objects.get()


def test_a_cause_that_comes_back_opens_its_event_and_is_told_again(
    session: CommandSession,
) -> None:
    with transaction.atomic():
        first = attention_raise(_cause(session))
    before = _told(session.controller)
    attention_snooze(before, timedelta(hours=8), actor="admin:ada")
    event = _go_and_come_back(session, detail={"operator": "admin:bob"})
    assert (event.id, event.detail) == (first, {"operator": "admin:bob"})
    ended = (event.resolved_at, event.resolution, event.resolved_by, event.snoozed_until)
    assert ended == (None, "", "", None)
    assert event.told_at is None
    assert event.raised_at > before.raised_at
    assert event.due_at == event.raised_at + timedelta(seconds=5)


def test_what_comes_back_before_its_end_was_told_is_no_news(session: CommandSession) -> None:
    Project.objects.update(attention_seconds={"taken_over": 5, "resolved": 60})
    with transaction.atomic():
        attention_raise(_cause(session))
    _told(session.controller)
    event = _go_and_come_back(session)
    assert (event.resolved_at, event.due_at) == (None, None)
    assert attention_resolve("one", "handed_back")
    assert AttentionEvent.objects.get().due_at is not None


@pytest.mark.parametrize(
    ("seconds_ago", "rest"),
    [((1,), 10), ((62, 2), 60), ((86_400, 1), 600), ((1_000, 60), 600), ((700, 650), None)],
    ids=str,
)
def test_what_comes_and_goes_is_told_ever_more_rarely(
    session: CommandSession, seconds_ago: tuple[float, ...], rest: float | None
) -> None:
    with transaction.atomic():
        attention_raise(_cause(session))
    _told(session.controller, *seconds_ago)
    event = _go_and_come_back(session)
    last = event.messages.latest("created_at").created_at
    its_seconds = event.raised_at + timedelta(seconds=5)
    assert event.due_at == (its_seconds if rest is None else last + timedelta(seconds=rest))


def test_a_run_that_goes_on_and_ends_again_is_told_again(session: CommandSession) -> None:
    ended = _cause(session, AttentionKind.RUN_ENDED)
    with transaction.atomic():
        attention_raise(ended)
    first = _told(session.controller)
    with transaction.atomic():
        attention_raise(ended)
    event = AttentionEvent.objects.get()
    assert event.told_at is None
    assert event.resolved_at == event.due_at == event.raised_at > first.raised_at
