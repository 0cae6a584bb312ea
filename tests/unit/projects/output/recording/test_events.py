"""Events are numbered in their order, placed in the output, bounded, and say nothing secret."""

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction

from controller_client.protocol.messages import HostTime
from projects.models import OutputChunk, SessionEvent
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import events
from projects.output.recording.events import NewEvent
from projects.policy.typed_input import Typing
from projects.sessions.transactions.input import _audited as audited_input
from projects.sessions.transactions.input import _NumberedInput
from projects.storage import clock
from projects.upkeep import sweeper
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db

AT = HostTime(wall=1_763_850_000.25, clock=8123.5)


def test_events_are_numbered_for_each_session_from_one() -> None:
    controller = make_controller()
    one, two = make_session(controller), make_session(controller)
    events.append([NewEvent(one.id, "prompt", 3), NewEvent(two.id, "end"), NewEvent(one.id, "end")])
    events.append([NewEvent(one.id, "gap")])
    stored = SessionEvent.objects.order_by("id").values_list("session_id", "seq", "kind")
    assert list(stored) == [
        (one.id, 1, "prompt"),
        (two.id, 1, "end"),
        (one.id, 2, "end"),
        (one.id, 3, "gap"),
    ]
    with pytest.raises(IntegrityError), transaction.atomic():
        SessionEvent.objects.create(session=one, seq=3, kind="gap", offset=0)


@pytest.mark.parametrize(
    ("size", "open_class", "hidden_class"),
    [
        (0, 0, 16),
        (1, 16, 16),
        (16, 16, 16),
        (17, 256, 256),
        (256, 256, 256),
        (257, 4096, 4096),
        (4096, 4096, 4096),
        (4097, 65_536, 65_536),
        (65_536, 65_536, 65_536),
    ],
)
def test_a_size_is_told_as_the_next_round_one(
    size: int, open_class: int, hidden_class: int
) -> None:
    assert events.size_class(size, is_hidden=False) == open_class
    assert events.size_class(size, is_hidden=True) == hidden_class
    typing = Typing(data=b"x" * size)
    told = audited_input(typing, _NumberedInput(3, 0, "line", "cat", ""))
    assert told == {"input_seq": 3, "at_most_bytes": open_class, "keys": 0, "eof": False}
    hidden = audited_input(typing, _NumberedInput(3, 0, "secret", "cat", ""))
    assert hidden == {
        "input_seq": 3,
        "typed": f"(hidden input, at most {hidden_class} keys)",
    }


def test_an_event_keeps_the_times_of_its_host() -> None:
    session = make_session(make_controller())
    events.append([NewEvent(session.id, "input", 5, "token:a", {"hidden": True}, AT)])
    event = SessionEvent.objects.get()
    assert (event.host_time, event.host_clock) == (datetime.fromtimestamp(AT.wall, UTC), AT.clock)
    assert (event.actor, event.detail, event.offset) == ("token:a", {"hidden": True}, 5)


def test_an_event_without_a_place_stands_after_all_stored_output() -> None:
    session = make_session(make_controller(), stdout_next_offset=70)
    events.append_locking(NewEvent(session.id, "approval"))
    session.delete()
    events.append_locking(NewEvent(session.id, "approval"))
    assert not SessionEvent.objects.exists()


def test_an_event_of_the_server_has_the_server_s_time_alone() -> None:
    session = make_session(make_controller(), stdout_next_offset=70)
    events.append([NewEvent(session.id, "take_over", actor="ada" * 100)])
    event = SessionEvent.objects.get()
    assert (event.offset, event.host_time, event.host_clock) == (70, None, None)
    assert event.actor == ("ada" * 100)[:128]


@pytest.mark.usefixtures("days_ahead")
def test_output_and_events_have_the_time_that_servers_agree_on() -> None:
    session = make_session(make_controller())
    output_log.append([NewChunk(session.id, "stdout", 0, 1, b"abc")])
    events.append([NewEvent(session.id, "prompt")])
    for model in (OutputChunk, SessionEvent):
        assert model.objects.filter(created_at__lte=clock.now()).count() == 1


@pytest.mark.parametrize(
    ("size", "is_hidden", "told"),
    [
        (0, False, 0),
        (0, True, 16),
        (5, True, 16),
        (5, False, 16),
        (17, True, 256),
        (10**6, False, 65_536),
    ],
)
def test_the_exact_length_of_an_input_is_not_told(size: int, is_hidden: bool, told: int) -> None:
    assert events.size_class(size, is_hidden=is_hidden) == told


def test_the_newest_events_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_EVENTS", 10)
    monkeypatch.setattr(events, "TRIM_EVENTS_PER_TRANSACTION", 4)
    busy, calm = make_session(make_controller("a")), make_session(make_controller("b"))
    events.append([NewEvent(busy.id, "prompt", number) for number in range(25)])
    events.append([NewEvent(calm.id, "prompt", number) for number in range(10)])
    assert sweeper.overfull_sessions() == [busy.id]
    while events.trim(busy.id):
        pass
    assert sorted(busy.events.values_list("seq", flat=True)) == list(range(16, 26))
    assert not sweeper.overfull_sessions()
    events.append([NewEvent(busy.id, "end")])
    assert busy.events.order_by("-seq").first().seq == 26
