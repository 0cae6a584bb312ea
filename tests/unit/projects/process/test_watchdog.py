"""A loop that stands still is told from one that runs."""

import asyncio

import pytest

from projects.process.watchdog import Watchdog

STILL = 3


class Loop:
    """A loop that runs what it was asked to only when the test says so."""

    def __init__(self) -> None:
        self.real = asyncio.new_event_loop()
        self.told: list[str] = []
        self.watchdog = Watchdog(self.real, lambda: self.told.append("still"), still_seconds=STILL)

    def run(self) -> None:
        self.real.call_soon(self.real.stop)
        self.real.run_forever()


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_a_loop_that_runs_between_two_looks_is_let_alone(loop: Loop) -> None:
    for _ in range(4 * STILL):
        assert loop.watchdog.look()
        loop.run()
    loop.real.close()
    assert loop.told == []


def test_a_loop_that_has_not_run_for_so_many_looks_is_told(loop: Loop) -> None:
    for _ in range(STILL):
        loop.watchdog.look()
    assert loop.told == []
    loop.watchdog.look()
    loop.real.close()
    assert loop.told == ["still"]


def test_looks_count_from_the_last_time_that_the_loop_ran(loop: Loop) -> None:
    for _ in range(3):
        for _ in range(STILL):
            loop.watchdog.look()
        loop.run()
    loop.real.close()
    assert loop.told == []


def test_a_loop_that_could_not_be_asked_owes_nothing(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_arguments: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(loop.real, "call_soon_threadsafe", no_memory)
        assert all(loop.watchdog.look() for _ in range(3 * STILL))
    loop.real.close()
    assert loop.told == []


def test_a_closed_loop_is_watched_no_longer(loop: Loop) -> None:
    loop.real.close()
    assert not loop.watchdog.look()
