"""The wait between connection attempts."""

import random

import pytest

from controller_client.protocol.limits import (
    RECONNECT_DOUBTED_SECONDS,
    RECONNECT_MAX_SECONDS,
    RECONNECT_MIN_SECONDS,
    RECONNECT_REFUSED_SECONDS,
    RECONNECT_RESET_AFTER_SECONDS,
    RECONNECT_SOON_SECONDS,
)
from controller_client.server_link.network.backoff import Backoff


def _longest(seed_count: int, attempt: int) -> float:
    delays = []
    for seed in range(seed_count):
        backoff = Backoff(random.Random(seed))
        delays.append([backoff.next_delay() for _ in range(attempt + 1)][attempt])
    return max(delays)


def test_the_longest_backoff_doubles_up_to_a_few_seconds() -> None:
    for attempt, ceiling in enumerate([0.5, 1.0, 2.0, 3.0]):
        assert ceiling * 0.9 < _longest(200, attempt) <= ceiling
    assert RECONNECT_MIN_SECONDS == 0.5


def test_a_short_outage_costs_a_few_seconds_and_a_long_one_few_attempts() -> None:
    for seed in range(200):
        backoff, outage = Backoff(random.Random(seed)), 0.0
        while outage < 40:
            outage += (delay := backoff.next_delay())
            assert delay <= 5, "half a minute away, and back within seconds"
        while outage < 3600:
            outage += backoff.next_delay()
        delays = [backoff.next_delay() for _ in range(200)]
        assert RECONNECT_MAX_SECONDS == 30.0
        assert 20 < max(delays) <= RECONNECT_MAX_SECONDS


def test_hosts_cut_off_together_spread_over_the_whole_interval() -> None:
    delays = [Backoff(random.Random(seed)).next_delay() for seed in range(1000)]
    tenths = {int(delay / RECONNECT_MIN_SECONDS * 10) for delay in delays}
    assert tenths == set(range(10))


def test_only_a_stable_connection_starts_the_series_anew() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(400):
        backoff.next_delay()
    backoff.was_connected(RECONNECT_RESET_AFTER_SECONDS - 1)
    assert max(backoff.next_delay() for _ in range(200)) > 20
    backoff.was_connected(RECONNECT_RESET_AFTER_SECONDS)
    assert backoff.next_delay() <= RECONNECT_MIN_SECONDS


@pytest.mark.parametrize("seed", range(20))
def test_a_refusal_is_waited_out_for_minutes_once_it_is_repeated(seed: int) -> None:
    backoff = Backoff(random.Random(seed))
    doubted, long = RECONNECT_DOUBTED_SECONDS, RECONNECT_REFUSED_SECONDS
    shares = [backoff.refused_delay() / seconds for seconds in (doubted, long, long)]
    backoff.was_welcomed()
    shares.append(backoff.refused_delay() / doubted)
    assert all(0.9 <= share <= 1.1 for share in shares)


def test_a_host_whose_server_stops_starts_the_series_anew() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(8):
        backoff.next_delay()
    backoff.was_sent_away()
    assert backoff.next_delay() <= RECONNECT_MIN_SECONDS


def test_a_host_that_was_served_reconnects_soon() -> None:
    backoff = Backoff(random.Random(1))
    for _ in range(400):
        backoff.next_delay()
    backoff.was_welcomed()
    assert backoff.next_delay() <= RECONNECT_SOON_SECONDS
    fresh = Backoff(random.Random(1))
    fresh.was_welcomed()
    assert fresh.next_delay() <= RECONNECT_MIN_SECONDS
