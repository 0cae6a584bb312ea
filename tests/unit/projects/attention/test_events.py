"""Events are rows of the transaction that raises them, one for each cause."""

from datetime import timedelta

import pytest
from django.db import transaction

from projects.attention.events import Cause, attention_raise, attention_resolve
from projects.models import AttentionEvent, AttentionKind, CommandSession, Controller, Project
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


def test_an_event_ends_once_and_stays_ended(session: CommandSession) -> None:
    with transaction.atomic():
        attention_raise(_cause(session))
        assert attention_resolve("one", "handed_back", by="admin:ada")
        assert not attention_resolve("one", "ended", by="admin:bob")
        attention_raise(_cause(session))
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
