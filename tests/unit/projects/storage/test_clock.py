"""The time by the database: ours, unless it is certainly off."""

from datetime import timedelta
from typing import Any, Self

import pytest
from django.db import connection
from django.utils import timezone

from projects.storage import clock


class _Cursor:
    """PostgreSQL's answer to what time it is, after ``takes`` seconds."""

    def __init__(self, there: list[float]) -> None:
        self._there = there

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_args: object) -> None:
        pass

    def execute(self, _statement: str) -> None:
        pass

    def fetchone(self) -> tuple[float]:
        return (self._there.pop(),)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that measures the offset.

    It takes our time before and after, and the database's time in between.
    """

    def measure(before: float, there: float, after: float) -> float:
        times = [after, before]
        with monkeypatch.context() as patched:
            patched.setattr(connection, "vendor", "postgresql")
            patched.setattr(connection, "cursor", lambda: _Cursor([there]))
            patched.setattr(clock.time, "time", times.pop)
            clock.measure()
        return clock._offset.seconds

    monkeypatch.setattr(clock._offset, "seconds", 0.0)
    return measure


def test_a_clock_that_is_minutes_off_is_put_right(asked: Any) -> None:
    assert asked(1000.0, 1120.5, 1001.0) == 120.0
    assert (clock.now() - timezone.now()).total_seconds() == pytest.approx(120, abs=5)
    assert asked(1000.0, 880.5, 1001.0) == -120.0
    assert asked(1000.0, 1000.4, 1000.1) == 0.0


def test_what_may_be_the_wait_for_the_answer_alone_does_not_count(asked: Any) -> None:
    assert asked(1000.0, 1000.5, 1008.0) == 0.0
    assert asked(1000.0, 1007.5, 1008.0) == 0.0


@pytest.mark.sqlite
@pytest.mark.django_db
def test_sqlite_has_our_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock._offset, "seconds", 0.0)
    clock.measure()
    assert clock._offset.seconds == 0.0


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_after_a_jump_the_clock_is_not_believed_about_ages(
    monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    steadiness = clock.Steadiness()
    monkeypatch.setattr(clock, "STEADINESS", steadiness)
    monkeypatch.setattr(steadiness, "_since", -clock.MOST_STEADY_SECONDS)
    assert clock.can_tell(7 * 24 * 3600.0)
    real = clock.now_seconds
    monkeypatch.setattr(clock, "now_seconds", lambda: real() + jump)
    assert not clock.can_tell(60.0)


def _jumped(monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    """The machine's clock is put on by so much, while this process runs."""
    monkeypatch.setattr(clock, "STEADINESS", clock.Steadiness())
    right, now = clock.time.time, timezone.now
    monkeypatch.setattr(clock.time, "time", lambda: right() + by)
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(seconds=by))


@pytest.mark.parametrize("jump", [20.0, 3600.0, -3600.0])
def test_a_lease_has_its_whole_length_whatever_the_clock_does(
    monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    before = timezone.now()
    _jumped(monkeypatch, jump)
    assert clock.lease_now(30.0) < before + timedelta(seconds=10)
    assert clock.lease_now(30.0) <= clock.now()


def test_a_lease_of_before_a_jump_is_over_when_nobody_renewed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _jumped(monkeypatch, 3600.0)
    assert clock.lease_now(30.0) < clock.now() - timedelta(seconds=1800)
    monkeypatch.setattr(clock.STEADINESS, "_stepped_at", clock.time.monotonic() - 31.0)
    assert clock.now() - clock.lease_now(30.0) < timedelta(seconds=10)


def test_a_clock_that_is_corrected_at_once_has_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    _jumped(monkeypatch, 3600.0)
    clock.lease_now(30.0)
    monkeypatch.setattr(clock._offset, "seconds", -3600.0)
    assert abs(clock.now() - clock.lease_now(30.0)) < timedelta(seconds=10)


def test_a_small_correction_is_no_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    steadiness = clock.Steadiness()
    monkeypatch.setattr(steadiness, "_since", -clock.MOST_STEADY_SECONDS)
    real = clock.now_seconds
    monkeypatch.setattr(clock, "now_seconds", lambda: real() + 30.0)
    assert steadiness.seconds() > clock.MOST_STEADY_SECONDS
