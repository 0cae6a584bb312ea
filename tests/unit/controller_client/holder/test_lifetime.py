"""The clock of a session's lifetime: it stands while it is told to, never for longer than it may in
all.
"""

import pytest

from controller_client.holder.lifetime import Lifetime
from controller_client.protocol.messages import PauseLifetime


def _pause(seq: int, *, is_paused: bool, max_seconds: float = 60.0) -> PauseLifetime:
    return PauseLifetime(seq=seq, session_id="s", is_paused=is_paused, max_seconds=max_seconds)


@pytest.fixture
def lifetime() -> Lifetime:
    return Lifetime(100.0, now=1000.0)


def test_it_ends_by_itself_where_nobody_says_anything(lifetime: Lifetime) -> None:
    assert (lifetime.is_over(1099.9), lifetime.is_over(1100.0), lifetime.ends_at) == (
        False,
        True,
        1100.0,
    )


def test_it_stands_between_a_stop_and_a_go(lifetime: Lifetime) -> None:
    lifetime.pause(_pause(1, is_paused=True), 1010.0)
    assert lifetime.report(1030.0).left_seconds == 90.0
    lifetime.pause(_pause(2, is_paused=False), 1040.0)
    assert (lifetime.is_over(1129.9), lifetime.is_over(1130.0)) == (False, True)


def test_who_never_says_go_holds_it_up_for_the_allowed_time_only(lifetime: Lifetime) -> None:
    lifetime.pause(_pause(1, is_paused=True), 1010.0)
    assert lifetime.ends_at == 1160.0
    assert (lifetime.is_over(1159.9), lifetime.is_over(1160.0)) == (False, True)
    assert lifetime.report(1080.0).is_paused is False


def test_the_allowed_time_is_for_all_stops_together(lifetime: Lifetime) -> None:
    for seq, at in ((1, 1000.0), (3, 1050.0)):
        lifetime.pause(_pause(seq, is_paused=True), at)
        lifetime.pause(_pause(seq + 1, is_paused=False), at + 40.0)
    assert (lifetime.ends_at, lifetime.report(1095.0).pause_left_seconds) == (1160.0, 0.0)


@pytest.mark.parametrize("seq", [1, 2], ids=["the stop again", "one that was overtaken"])
def test_what_comes_late_or_twice_changes_nothing(lifetime: Lifetime, seq: int) -> None:
    lifetime.pause(_pause(1, is_paused=True), 1010.0)
    lifetime.pause(_pause(2, is_paused=False), 1020.0)
    lifetime.pause(_pause(seq, is_paused=True), 1030.0)
    assert lifetime.ends_at == 1110.0


def test_a_second_stop_does_not_begin_the_allowed_time_anew(lifetime: Lifetime) -> None:
    lifetime.pause(_pause(1, is_paused=True), 1000.0)
    lifetime.pause(_pause(2, is_paused=True), 1050.0)
    assert lifetime.ends_at == 1160.0


def test_more_time_helps_from_then_on_and_less_never_takes_back(lifetime: Lifetime) -> None:
    lifetime.pause(_pause(1, is_paused=True), 1000.0)
    lifetime.pause(_pause(2, is_paused=True, max_seconds=90.0), 1010.0)
    assert lifetime.ends_at == 1190.0
    lifetime.pause(_pause(3, is_paused=True, max_seconds=5.0), 1020.0)
    assert lifetime.ends_at == 1120.0


def test_a_stop_that_may_not_last_is_none(lifetime: Lifetime) -> None:
    lifetime.pause(_pause(1, is_paused=True, max_seconds=0.0), 1010.0)
    report = lifetime.report(1020.0)
    assert (lifetime.ends_at, report.is_paused, report.left_seconds) == (1100.0, False, 80.0)
