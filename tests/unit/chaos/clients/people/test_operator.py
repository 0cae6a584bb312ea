"""An operator answers the prompt that is there now, and none that was answered already."""

import asyncio
from pathlib import Path

import pytest

from chaos.clients.conversation import Place
from chaos.clients.people import operator
from chaos.clients.people.operator import Operator
from chaos.history import History
from chaos.wire import Endpoint
from tests.unit.chaos.clients.answers import NOBODY


class Offline(Operator):
    """An operator whose page shows what a test says."""

    async def show(self, offset: int) -> None:
        """Have the page show everything up to here."""
        self.at = offset
        async with self.changed:
            self.changed.notify_all()

    async def _watch(self) -> None:
        await asyncio.Event().wait()


async def test_a_page_that_lags_behind_is_waited_for(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = (tmp_path, tmp_path, tmp_path)
    place = Place(Endpoint(0, ""), history, *places, asyncio.Event(), NOBODY)
    page = Offline(place, "taken", "s", "operator", 0)
    waiting = asyncio.create_task(page.has_seen(20))
    await page.show(10)
    assert not waiting.done()
    await page.show(20)
    assert await waiting
    monkeypatch.setattr(operator, "_PROMPT_SECONDS", 0.0)
    assert not await page.has_seen(21)
    await page.close()
