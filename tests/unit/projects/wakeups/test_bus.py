"""Rings reach listeners in this process at once, and in others through the channel layer.

A broken layer costs only the rings to other processes.
"""

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from channels.layers import InMemoryChannelLayer
from prometheus_client import REGISTRY

from projects.wakeups import bus as module
from projects.wakeups.bus import Exchange
from tests.support.waiting import await_until

DEADLINE_SECONDS = 30.0


class _Layer(InMemoryChannelLayer):
    """A layer that can be broken: it fails at everything, or hangs for ever."""

    mode = "up"

    async def _pass(self) -> None:
        if self.mode == "broken":
            raise ConnectionError
        if self.mode == "hanging":
            await asyncio.Event().wait()

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        await self._pass()
        await super().group_send(group, message)

    async def new_channel(self, prefix: str = "specific.") -> str:
        await self._pass()
        return str(await super().new_channel(prefix))


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> _Layer:
    found = _Layer()
    monkeypatch.setattr(module, "get_channel_layer", lambda: found)
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    return found


def _failed() -> float:
    return REGISTRY.get_sample_value("holdline_doorbells_failed_total") or 0.0


async def _heard(event: asyncio.Event) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        await event.wait()


async def test_a_ring_is_heard_here_at_once_whatever_the_layer_does(layer: _Layer) -> None:
    for layer.mode in ("up", "broken", "hanging"):
        exchange, event, name = Exchange(), asyncio.Event(), str(uuid4())
        exchange.join(name, event)
        exchange.ring(name)
        assert event.is_set()


async def test_a_ring_is_heard_in_other_processes(layer: _Layer) -> None:
    there, here, event, other = (
        Exchange("there"),
        Exchange("here"),
        asyncio.Event(),
        asyncio.Event(),
    )
    there.join("a", event)
    there.join("b", other)
    await await_until(
        lambda: layer.groups.get(module.GROUP), DEADLINE_SECONDS, "the other process to listen"
    )
    event.clear()
    other.clear()
    here.ring("a")
    await _heard(event)
    assert not other.is_set()


async def test_a_ring_for_one_leaves_the_process_only_where_nobody_hears_it(layer: _Layer) -> None:
    there, here, event, mine = Exchange("there"), Exchange("here"), asyncio.Event(), asyncio.Event()
    there.join("a", event)
    await await_until(
        lambda: layer.groups.get(module.GROUP), DEADLINE_SECONDS, "the other process to listen"
    )
    event.clear()
    here.ring_one("a")
    await _heard(event)
    here.join("a", mine)
    here.ring_one("a")
    assert mine.is_set()
    assert here._unsent == set()


async def test_what_a_stranger_puts_into_the_layer_makes_somebody_look_at_most(
    layer: _Layer,
) -> None:
    there, here, event = Exchange("there"), Exchange("here"), asyncio.Event()
    there.join("a", event)
    await await_until(
        lambda: layer.groups.get(module.GROUP), DEADLINE_SECONDS, "the other process to listen"
    )
    event.clear()
    forged: list[dict[str, Any]] = [
        {},
        {"names": 5},
        {"names": [["a"], {"b": 1}, None]},
        {"names": "b" * 10_000},
        {"command": "id"},
    ]
    for message in forged:
        await layer.group_send(module.GROUP, {"type": "doorbell", "process": ["x"], **message})

    def is_heard() -> bool:
        here.ring("a")
        return event.is_set()

    await await_until(is_heard, DEADLINE_SECONDS, "an honest ring to be heard again")
    assert there.listeners() == {"a": 1}


async def test_rings_lost_in_a_layer_outage_are_counted_and_made_up_for_later(
    layer: _Layer,
) -> None:
    layer.mode = "broken"
    there, here, event = Exchange("there"), Exchange("here"), asyncio.Event()
    there.join("a", event)
    before = _failed()
    here.ring("a")
    await await_until(lambda: _failed() > before, DEADLINE_SECONDS, "the loss to be counted")
    assert not event.is_set()
    layer.mode = "up"
    # It may have missed something meanwhile: everybody looks when the layer is there again.
    await _heard(event)


async def test_a_layer_that_hangs_gathers_each_name_once(layer: _Layer) -> None:
    layer.mode = "hanging"
    exchange = Exchange()
    for number in range(10_000):
        exchange.ring(f"session {number % 10}")
    await asyncio.sleep(0)
    assert len(exchange._unsent) <= 10


async def _ended_although_hidden(exchange: Exchange) -> None:
    for task in exchange._tasks:
        task.cancel()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await asyncio.gather(*exchange._tasks, return_exceptions=True)


@pytest.mark.parametrize("hides", ["group_send", "new_channel", "group_add", "receive", "flush"])
async def test_who_is_told_to_stop_stops_though_the_layer_hides_it(
    layer: _Layer, monkeypatch: pytest.MonkeyPatch, hides: str
) -> None:
    works, is_reached = getattr(layer, hides), asyncio.Event()

    async def hiding(*arguments: Any) -> Any:
        is_reached.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return {} if hides == "receive" else await works(*arguments)

    if hides == "flush":
        layer.mode = "broken"
    monkeypatch.setattr(layer, hides, hiding)
    exchange = Exchange()
    exchange.ring("a")
    await _heard(is_reached)
    await _ended_although_hidden(exchange)


async def test_without_a_layer_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "get_channel_layer", lambda: None)
    exchange, event = Exchange(), asyncio.Event()
    exchange.join("a", event)
    exchange.ring("a")
    assert event.is_set()
    assert exchange._tasks == []
    exchange.leave("a", event)
    assert exchange.listeners() == {}
