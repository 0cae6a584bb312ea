"""Prompts that stay and hosts that are away are noticed from their rows alone, once each."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects.attention import noticing, worker
from projects.attention.events import Cause, attention_raise
from projects.models import AttentionEvent, AttentionKind, CommandSession, Controller, Project
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


def _want(controller: Controller, **seconds: float) -> None:
    Project.objects.filter(id=controller.project_id).update(attention_seconds=seconds)


def _asking(controller: Controller, kind: str = "secret", **fields: Any) -> CommandSession:
    waiting: Mapping[str, Any] = {
        "terminal_state": "awaiting_input",
        "terminal_kind": kind,
        "started_at": timezone.now() - timedelta(seconds=60),
    }
    return make_session(controller, **{**waiting, **fields})


def _look() -> list[AttentionEvent]:
    wanted = noticing.projects_that_want()
    if noticing.has_news(wanted):
        noticing.note_news(wanted)
    return list(AttentionEvent.objects.order_by("raised_at"))


def test_a_prompt_that_stays_is_one_event_until_it_is_answered(controller: Controller) -> None:
    _want(controller, secret_wanted=5)
    session = _asking(controller)
    [event] = _look()
    assert (event.kind, event.session_id) == ("secret_wanted", session.id)
    assert _look() == [event]
    # The program draws its prompt anew: it asks the same.
    CommandSession.objects.update(terminal_offset=10, stdout_next_offset=10)
    assert _look() == [event]
    CommandSession.objects.update(input_seq=1)
    [ended] = _look()
    assert ended.resolution == "answered"


def test_a_prompt_that_comes_back_at_its_place_is_noticed_again(controller: Controller) -> None:
    _want(controller, secret_wanted=5)
    session = _asking(controller)
    [event] = _look()
    CommandSession.objects.update(terminal_state="running")
    assert [event.resolution for event in _look()] == ["went_on"]
    CommandSession.objects.update(terminal_state="awaiting_input")
    [again] = _look()
    assert (again.id, again.resolved_at, again.told_at) == (event.id, None, None)
    assert not noticing.has_news(noticing.projects_that_want())
    assert again.session_id == session.id


def test_known_prompts_keep_no_other_from_being_noticed(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noticing, "MOST_AT_ONCE", 2)
    _want(controller, secret_wanted=5, host_away=0)
    asking = {_asking(controller, slot=None).pk for _ in range(5)}
    for _ in range(3):
        events = _look()
    assert {event.session_id for event in events} == asking
    CommandSession.objects.update(input_seq=1)
    assert {event.resolution for event in _look()} == {"answered"}


def test_the_next_prompt_is_an_event_of_its_own(controller: Controller) -> None:
    _want(controller, secret_wanted=5)
    _asking(controller)
    _look()
    CommandSession.objects.update(input_seq=1, terminal_input_seq=1, terminal_offset=5)
    assert [event.resolution for event in _look()] == ["answered", ""]


@pytest.mark.parametrize(
    "fields",
    [
        {"terminal_kind": "shell"},
        {"taken_over_by": "admin:ada"},
        {"terminal_state": "running"},
        {"stdout_next_offset": 5},
        {"input_seq": 1},
        {"state": SessionState.EXITED},
    ],
    ids=str,
)
def test_what_waits_for_nobody_is_no_event(controller: Controller, fields: dict[str, Any]) -> None:
    _want(controller, secret_wanted=0, input_wanted=0)
    _asking(controller, **fields)
    assert _look() == []


def test_a_prompt_counts_from_when_it_was_asked(controller: Controller) -> None:
    _want(controller, secret_wanted=30)
    _asking(controller, started_at=timezone.now())
    assert _look() == []
    CommandSession.objects.update(started_at=timezone.now() - timedelta(seconds=31))
    assert len(_look()) == 1


def test_each_kind_has_its_own_seconds(controller: Controller) -> None:
    _want(controller, secret_wanted=10)
    _asking(controller, "line")
    assert _look() == []
    _want(controller, input_wanted=10)
    assert [event.kind for event in _look()] == ["input_wanted"]


def test_a_host_is_away_once_for_each_connection(controller: Controller) -> None:
    _want(controller, host_away=0)
    past, soon = timezone.now() - timedelta(seconds=1), timezone.now() + timedelta(minutes=1)
    assert _look() == []
    Controller.objects.update(lease_expires_at=past)
    assert [event.kind for event in _look()] == ["host_away"]
    Controller.objects.update(lease_expires_at=soon, epoch=2)
    assert [event.resolution for event in _look()] == ["back"]
    Controller.objects.update(lease_expires_at=past)
    assert [event.resolution for event in _look()] == ["back", ""]


def test_a_connection_that_outlives_an_outage_is_missed_later(
    controller: Controller,
) -> None:
    _want(controller, host_away=0)
    for expected in ("", "back", "", "back"):
        lease = timedelta(minutes=-1 if not expected else 1)
        Controller.objects.update(lease_expires_at=timezone.now() + lease)
        assert [event.resolution for event in _look()] == [expected]


def test_an_end_of_the_session_ends_its_events(controller: Controller) -> None:
    _want(controller, secret_wanted=5)
    _asking(controller)
    _look()
    CommandSession.objects.update(state=SessionState.EXITED)
    assert [event.resolution for event in _look()] == ["ended"]


def test_nothing_wanted_costs_two_small_reads(controller: Controller) -> None:
    _asking(controller)
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert _look() == []
    assert [query["sql"].split()[0] for query in seen.captured_queries] == ["SELECT"] * 3


def test_waiting_approvals_give_the_worker_nothing_to_look_for(controller: Controller) -> None:
    for number in range(3):
        attention_raise(
            Cause(
                kind=AttentionKind.APPROVAL_WANTED,
                key=f"approval:{number}",
                project_id=controller.project_id,
            )
        )
    assert AttentionEvent.objects.filter(resolved_at__isnull=True).count() == 3
    with CaptureQueriesContext(connection) as asked:
        assert worker.look() == worker.Todo({})
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("kind", "fields", "resolution"),
    [
        (AttentionKind.HOST_AWAY, {"revoked_at": timezone.now()}, "revoked"),
        (AttentionKind.HOST_ALARM, {"revoked_at": timezone.now()}, "revoked"),
        (AttentionKind.HOST_ALARM, {"alarmed_at": None}, "dismissed"),
        (AttentionKind.HOST_ALARM, {"alarmed_at": timezone.now()}, ""),
        (AttentionKind.HOST_AWAY, {"lease_expires_at": None}, ""),
    ],
)
def test_an_event_of_a_host_ends_with_its_cause(
    controller: Controller, kind: AttentionKind, fields: dict[str, Any], resolution: str
) -> None:
    _want(controller, **{kind: 0.0})
    Controller.objects.update(alarmed_at=timezone.now(), lease_expires_at=None)
    attention_raise(
        Cause(kind=kind, key="one", project_id=controller.project_id, controller_id=controller.id)
    )
    Controller.objects.update(**fields)
    [event] = _look()
    assert (event.resolution, event.resolved_at is None) == (resolution, not resolution)


def test_a_take_over_lasts_until_the_keyboard_is_handed_back(controller: Controller) -> None:
    _want(controller, taken_over=0)
    session = make_session(controller, taken_over_by="admin:ada")
    attention_raise(
        Cause(
            kind=AttentionKind.TAKEN_OVER,
            key="one",
            project_id=controller.project_id,
            session_id=session.id,
        )
    )
    assert [event.resolution for event in _look()] == [""]
    CommandSession.objects.update(taken_over_by="")
    assert [event.resolution for event in _look()] == ["handed_back"]
