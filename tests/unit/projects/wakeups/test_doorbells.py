"""A doorbell may be lost. Nobody waits for it in vain."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from projects.wakeups import doorbells
from projects.wakeups.bus import exchange
from tests.support.waiting import await_until


async def test_a_ring_wakes_whoever_waits() -> None:
    session_id = uuid4()
    async with (
        doorbells.session_doorbell(session_id) as bell,
        doorbells.session_doorbell(session_id) as other,
    ):
        waits = asyncio.gather(bell.wait(10), other.wait(10))
        await doorbells.ring_session(session_id)
        assert await waits == [True, True]


async def test_rings_between_two_waits_are_kept_as_one() -> None:
    session_id = uuid4()
    async with doorbells.session_doorbell(session_id) as bell:
        for _ in range(300):
            await doorbells.ring_session(session_id)
            await asyncio.sleep(0)
        assert await bell.wait(1)
        # Whoever starts to hear other processes is rung once more, whenever that is.
        assert not (await bell.wait(0.01) and await bell.wait(0.01))


async def test_a_wait_never_lasts_longer_than_the_safety_net(settings: Any) -> None:
    settings.SAFETY_NET_SECONDS = 0.02
    async with doorbells.session_doorbell(uuid4()) as bell:
        # Whoever starts to hear other processes looks once, as it may have missed something.
        assert not (await bell.wait(60) and await bell.wait(60))


async def test_leaving_forgets_the_group_even_when_cancelled() -> None:
    session_id = uuid4()

    async def wait() -> None:
        async with doorbells.session_doorbell(session_id) as bell:
            while True:
                await bell.wait(60)

    waiting = asyncio.create_task(wait())
    await await_until(
        lambda: doorbells.session_group(session_id) in exchange().listeners(),
        30,
        "the waiter to listen",
    )
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert exchange().listeners() == {}
