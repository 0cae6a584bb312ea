"""Places for the calls of one token: their number, the queue, and calls that give up."""

import asyncio
from typing import Any

import pytest

from projects.accounts import call_places
from projects.accounts.call_places import place
from projects.accounts.errors import RateLimited
from tests.support.waiting import await_until

_GREEDY, _OTHER = ("greedy", "s"), ("other", "s")


@pytest.fixture(autouse=True)
def _two_places(settings: Any) -> None:
    settings.MAX_CALLS_PER_TOKEN = 2


def in_line(holder: tuple[str, str]) -> int:
    return len(call_places._lines[holder].waiting) if holder in call_places._lines else 0


class _Calls:
    """Calls that stay in their places until they are told to go."""

    def __init__(self) -> None:
        self.served: list[int] = []
        self.goes_on = [asyncio.Event() for _ in range(20)]

    def start(self, number: int, holder: tuple[str, str] = _GREEDY) -> asyncio.Task[None]:
        async def call() -> None:
            async with place(holder):
                self.served.append(number)
                await self.goes_on[number].wait()

        return asyncio.create_task(call())


async def test_a_full_token_waits_in_line_and_others_go_on() -> None:
    calls = _Calls()
    tasks = [calls.start(number) for number in range(4)]
    await await_until(lambda: in_line(_GREEDY) == 2, 10, "two in line")
    other = calls.start(9, _OTHER)
    await await_until(lambda: calls.served == [0, 1, 9], 10, "the other token's call")
    calls.goes_on[1].set()
    await await_until(lambda: calls.served == [0, 1, 9, 2], 10, "the first in line")
    for event in calls.goes_on:
        event.set()
    await asyncio.gather(*tasks, other)
    assert call_places._lines == {}


async def test_a_line_that_is_too_long_refuses_at_once() -> None:
    calls = _Calls()
    most = 2 + 2 * call_places.IN_LINE_PER_PLACE
    tasks = [calls.start(number) for number in range(most)]
    await await_until(lambda: in_line(_GREEDY) == most - 2, 10, "a full line")
    with pytest.raises(RateLimited) as refused:
        async with place(_GREEDY):
            pytest.fail("there was a place")
    assert refused.value.body()["retry_after_seconds"] == 1
    for event in calls.goes_on:
        event.set()
    await asyncio.gather(*tasks)
    assert call_places._lines == {}


async def test_who_waits_too_long_is_refused_and_leaves_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_places, "IN_LINE_SECONDS", 0.01)
    calls = _Calls()
    tasks = [calls.start(number) for number in range(2)]
    await await_until(lambda: len(calls.served) == 2, 10, "both places to be taken")
    with pytest.raises(RateLimited):
        async with place(_GREEDY):
            pytest.fail("there was a place")
    assert in_line(_GREEDY) == 0
    for event in calls.goes_on:
        event.set()
    await asyncio.gather(*tasks)
    assert call_places._lines == {}


async def test_who_is_cancelled_in_line_gives_the_place_to_the_next() -> None:
    calls = _Calls()
    tasks = [calls.start(number) for number in range(5)]
    await await_until(lambda: in_line(_GREEDY) == 3, 10, "three in line")
    # The first in line gets its place and is cancelled in the same turn of the loop, the second one
    # before.
    calls.goes_on[0].set()
    tasks[3].cancel()
    await asyncio.sleep(0)
    tasks[2].cancel()
    await await_until(lambda: 4 in calls.served, 10, "the last one's place")
    for event in calls.goes_on:
        event.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert call_places._lines == {}


async def test_a_place_is_not_lost_to_one_who_was_just_cancelled() -> None:
    calls = _Calls()
    tasks = [calls.start(number) for number in range(4)]
    await await_until(lambda: in_line(_GREEDY) == 2, 10, "two in line")
    # A place is given up when the first in line is cancelled already, and before it has had its
    # turn to leave the line.
    calls.goes_on[0].set()
    tasks[2].cancel()
    await await_until(lambda: 3 in calls.served, 10, "the place of the one behind it")
    for event in calls.goes_on:
        event.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [
        type(None),
        type(None),
        asyncio.CancelledError,
        type(None),
    ]
    assert call_places._lines == {}
