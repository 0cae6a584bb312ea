"""A minute's worth may come at once, then more as time passes, whichever process counts."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from uuid import uuid4

import pytest
from django.db import connection, transaction

from projects.accounts import rate_limits
from projects.accounts.errors import RateLimited
from projects.accounts.rate_limits import (
    rate_check,
    rate_take,
    rate_take_ahead,
    used_if_refused,
)
from projects.errors.base import ControllerActionError
from projects.errors.hosts import ControllerOffline
from projects.models import RateMeter

pytestmark = pytest.mark.django_db(transaction=True)


class Clock:
    """Stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000_000.0
        monkeypatch.setattr(rate_limits.clock, "now_seconds", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def _taken(key: str, times: int, per_minute: int) -> int:
    done = 0
    for _ in range(times):
        try:
            rate_take(key, 1, per_minute, "x")
        except RateLimited:
            break
        done += 1
    return done


def test_a_minutes_worth_comes_at_once_and_the_rest_at_its_pace(clock: Clock) -> None:
    assert _taken("k", 20, 10) == 10
    with pytest.raises(RateLimited) as refused:
        rate_take("k", 1, 10, "starts")
    assert refused.value.retry_after_seconds == 6
    assert refused.value.body()["retry_after_seconds"] == 6
    clock.now += 6
    assert _taken("k", 5, 10) == 1
    clock.now += 3600
    assert _taken("k", 20, 10) == 10


def test_keys_do_not_share_and_no_limit_counts_nothing(clock: Clock) -> None:
    assert _taken("a", 10, 3) == 3
    assert _taken("b", 10, 3) == 3
    assert _taken("c", 10, 0) == 10
    assert not RateMeter.objects.filter(key="c").exists()


def test_an_amount_over_a_minutes_worth_waits_until_the_meter_is_empty(clock: Clock) -> None:
    rate_take("k", 900, 1000, "bytes")
    with pytest.raises(RateLimited) as refused:
        rate_take("k", 200, 1000, "bytes")
    assert refused.value.retry_after_seconds == 6
    rate_take("k", 100, 1000, "bytes")
    with pytest.raises(RateLimited):
        rate_take("k", 5000, 1000, "bytes")
    clock.now += 60
    rate_take("k", 5000, 1000, "bytes")


def test_a_check_uses_nothing(clock: Clock) -> None:
    for _ in range(5):
        rate_check("k", 2, "x")
    assert _taken("k", 5, 2) == 2
    with pytest.raises(RateLimited):
        rate_check("k", 2, "x")


def test_a_clock_that_is_put_back_locks_nobody_out(clock: Clock) -> None:
    rate_take("back", 10, 10, "things")
    clock.now -= 3600
    rate_check("back", 10, "things")
    rate_take("back", 10, 10, "things")
    with pytest.raises(RateLimited) as over:
        rate_take("back", 1, 10, "things")
    assert over.value.retry_after_seconds <= 60


def test_meters_that_measure_nothing_go(clock: Clock) -> None:
    rate_take("old", 1, 10, "x")
    clock.now += 30
    rate_take("new", 1, 10, "x")
    assert rate_limits.forget_idle() == 1
    assert [meter.key for meter in RateMeter.objects.all()] == ["new"]


def test_many_at_once_get_no_more_than_the_rate() -> None:
    key = str(uuid4())
    began = time.monotonic()

    def take(_: int) -> int:
        try:
            return _taken(key, 5, 20)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        taken = sum(threads.map(take, range(8)))
    # However slow the machine: 20 at once, and one more for every three seconds it took.
    assert 20 <= taken <= 20 + (time.monotonic() - began) / 3 + 1


def test_amounts_taken_ahead_are_used_up_before_more_is_taken(clock: Clock) -> None:
    for _ in range(100):
        rate_take_ahead("ahead", 10, 6400, "bytes")
    # A 64th of a minute's worth each time: ten of these inputs.
    assert RateMeter.objects.get(key="ahead").free_at == pytest.approx(
        clock.now + 60 * 10 * 100 / 6400
    )
    assert not all(_fits("ahead", 70, 6400) for _ in range(1000))
    assert sum(_fits("ahead", 1, 6400) for _ in range(100)) < 70, (
        "what was left is used to the last byte, and nothing beyond"
    )
    clock.now += 3600
    assert sum(_fits("ahead", 100, 6400) for _ in range(100)) == 64


def test_a_rollback_discards_the_amount_taken_ahead(clock: Clock) -> None:
    with transaction.atomic():
        rate_take_ahead("undone", 1, 6400, "bytes")
        transaction.set_rollback(True)
    assert not RateMeter.objects.filter(key="undone").exists()
    rate_take_ahead("undone", 1, 6400, "bytes")
    assert RateMeter.objects.filter(key="undone").exists()


@pytest.mark.parametrize(
    ("refusal", "is_used"),
    [(ControllerActionError("no"), True), (ControllerOffline("web-1"), False), (KeyError(), False)],
    ids=["refused", "retryable", "failed"],
)
@pytest.mark.parametrize("amount", [10, 150])
def test_only_a_final_refusal_uses_a_rate(
    clock: Clock, refusal: Exception, *, is_used: bool, amount: int
) -> None:
    rate_take_ahead("token", 10, 6400, "bytes")
    # Of the 100 that were taken ahead 90 are left: they cover an input of 10, and none of 150.
    for _ in range(3):
        with suppress(type(refusal)), used_if_refused(), transaction.atomic():
            rate_take_ahead("token", amount, 6400, "bytes")
            raise refusal
    left = sum(_fits("token", 1, 6400) for _ in range(6400))
    # The meter counts in parts of a second, so that the last byte may not fit.
    assert left == pytest.approx(6390 - (3 * amount if is_used else 0), abs=1)


def _fits(key: str, amount: int, per_minute: int) -> bool:
    try:
        rate_take_ahead(key, amount, per_minute, "x")
    except RateLimited:
        return False
    return True
