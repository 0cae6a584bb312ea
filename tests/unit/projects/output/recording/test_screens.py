"""Screens are kept for jumps, and go with the output that they may show."""

import pytest

from projects.models import CommandSession, OutputGap
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import erasure, screens
from projects.output.recording.erasure import Range
from projects.output.recording.screens import NewScreen, ScreenPlace
from projects.secrets.masks import secret_remember
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> CommandSession:
    """A session with 60 bytes of output, in pieces of 10, of which the newest may stay."""
    monkeypatch.setattr(screens, "STEP_BYTES", 10)
    monkeypatch.setattr(output_log, "TRIM_SLACK_BYTES", 0)
    found = make_session(make_controller(), stdout_next_offset=60)
    pieces = [NewChunk(found.pk, "stdout", at, at, b"0123456789") for at in range(0, 60, 10)]
    output_log.append(pieces)
    return found


def _at(stdout: int) -> NewScreen:
    return NewScreen(ScreenPlace(time=stdout / 10, stdout=stdout, stderr=0), b"state %d" % stdout)


def _store(session: CommandSession, *offsets: int) -> bool:
    return screens.store(session.pk, screens.version(session.pk), map(_at, offsets))


def _kept(session: CommandSession) -> list[int]:
    return [place.stdout for place in screens.places(session.pk)]


def test_screens_are_found_in_their_order(session: CommandSession) -> None:
    assert screens.last(session.pk).place == 0
    assert _store(session, 30, 10)
    assert _kept(session) == [10, 30]
    assert screens.state_at(session.pk, 30) == b"state 30"
    assert screens.state_at(session.pk, 20) is None
    assert [place.stdout for place in screens.places(session.pk, after=10)] == [30]


def test_a_recording_is_covered_up_to_two_steps_from_its_end(session: CommandSession) -> None:
    assert not screens.is_covered(session)
    _store(session, 10, 30)
    assert not screens.is_covered(session)
    _store(session, 10, 40)
    assert screens.is_covered(session)


def test_no_screen_is_kept_of_output_that_was_taken_away(session: CommandSession) -> None:
    read_at = screens.version(session.pk)
    assert output_log.trim(session.pk, "stdout", 30) == 30
    assert not screens.store(session.pk, read_at, [_at(40)])
    assert _kept(session) == []


def test_no_screen_is_kept_of_output_beside_a_gap_that_grew_over_it(
    session: CommandSession,
) -> None:
    erasure.black_out(session.pk, {"stdout": Range(10, 20, 1)})
    read_at = screens.version(session.pk)
    erasure.black_out(session.pk, {"stdout": Range(20, 30, 1)})
    assert OutputGap.objects.count() == 1
    assert not screens.store(session.pk, read_at, [_at(30)])
    assert _kept(session) == []


def test_a_new_secret_takes_the_screens_that_may_show_it(session: CommandSession) -> None:
    read_at = screens.version(session.pk)
    _store(session, 10, 30)
    secret_remember(session.pk, b"correct-horse")
    assert _kept(session) == []
    assert not screens.store(session.pk, read_at, [_at(40)])
    assert _store(session, 10, 30)
    secret_remember(session.pk, b"correct-horse")
    assert _kept(session) == [10, 30]


def test_screens_go_with_the_output_before_them(session: CommandSession) -> None:
    _store(session, 10, 30, 40)
    assert output_log.trim(session.pk, "stdout", 30) == 30
    assert _kept(session) == [40]
    assert not output_log.clear(session.pk)
    assert _kept(session) == []
