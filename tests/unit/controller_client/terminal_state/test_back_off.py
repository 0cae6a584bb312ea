"""Delays between looks grow with the silence, and start over with each event."""

import itertools

from controller_client.terminal_state.back_off import (
    FIRST_SECONDS,
    IDLE_SECONDS,
    KERNEL_IDLE_SECONDS,
    WAITING_SECONDS,
    BackOff,
    longest_delay,
)


def test_delays_grow_to_the_cap_of_the_silence() -> None:
    back_off = BackOff()
    delays = [back_off.next_delay(0.5) for _ in range(30)]
    assert delays[0] == FIRST_SECONDS
    assert all(later >= earlier for earlier, later in itertools.pairwise(delays))
    assert delays[-1] == longest_delay(0.5) == 0.05
    assert back_off.next_delay(5.0) == 0.1
    assert back_off.next_delay(50.0) == 0.25


def test_output_input_and_reset_start_the_delays_over() -> None:
    for event in (BackOff.on_output, BackOff.on_input, BackOff.reset):
        back_off = BackOff()
        for _ in range(10):
            back_off.next_delay(0.0)
        event(back_off)
        assert back_off.next_delay(0.0) == FIRST_SECONDS


def test_a_waiting_program_is_looked_at_ever_less_often() -> None:
    for is_proven, longest in ((True, KERNEL_IDLE_SECONDS), (False, IDLE_SECONDS)):
        back_off = BackOff()
        delays = [back_off.next_waiting_delay(is_proven=is_proven) for _ in range(10)]
        assert delays[0] == WAITING_SECONDS
        assert all(later >= earlier for earlier, later in itertools.pairwise(delays))
        assert delays[-1] == longest
        back_off.on_claim()
        assert back_off.next_waiting_delay(is_proven=is_proven) == WAITING_SECONDS


def test_a_wait_that_a_timeout_may_end_is_looked_at_within_seconds() -> None:
    assert IDLE_SECONDS <= 5.0
    assert KERNEL_IDLE_SECONDS <= 15.0


def test_a_flood_of_output_must_pause_before_a_look() -> None:
    back_off = BackOff()
    back_off.on_output()
    assert back_off.pause_after_output() == 0.0
    for _ in range(200):
        back_off.on_output()
    assert back_off.pause_after_output() > 0.0


def test_an_input_or_a_claim_ends_the_flood() -> None:
    for event in (BackOff.on_input, BackOff.on_claim):
        back_off = BackOff()
        for _ in range(200):
            back_off.on_output()
        event(back_off)
        assert back_off.pause_after_output() == 0.0
