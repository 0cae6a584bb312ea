"""The time by the database: ours, unless it is certainly off."""

from typing import Any, Self

import pytest
from django.db import connection
from django.utils import timezone

from projects import clock


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
    """Called with our time before and after, and the database's: what the clock says after measuring, against ours."""

    def measure(before: float, there: float, after: float) -> float:
        times = [after, before]
        with monkeypatch.context() as patched:
            patched.setattr(connection, "vendor", "postgresql")
            patched.setattr(connection, "cursor", lambda: _Cursor([there]))
            patched.setattr(clock.time, "time", times.pop)
            clock.measure()
        return clock._ahead_seconds

    monkeypatch.setattr(clock, "_ahead_seconds", 0.0)
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
    monkeypatch.setattr(clock, "_ahead_seconds", 0.0)
    clock.measure()
    assert clock._ahead_seconds == 0.0
