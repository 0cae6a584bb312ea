"""The readers of the live pages go on after an error: one for everybody, they would end for all."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from console.live import board, session_reads
from console.live.board import BoardReader
from console.live.feed import Feeds

pytestmark = pytest.mark.django_db(transaction=True)


def _failing_once(then: Any) -> Callable[..., Any]:
    answers: Iterator[Any] = iter([ValueError("a row that cannot be shown"), then])

    def read(*_arguments: object) -> Any:
        answer = next(answers, then)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return read


async def test_a_board_that_failed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "PERIOD_SECONDS", 0.01)
    monkeypatch.setattr(board, "read_board", _failing_once({}))
    monkeypatch.setattr(board, "read_elsewhere", list)
    reader, news = BoardReader(), asyncio.Event()
    async with reader.watching(news), asyncio.timeout(5):
        for _ in range(2):
            await news.wait()
            news.clear()
        assert reader.version == 1


async def test_a_board_of_which_half_failed_tells_no_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A row that changed in a version that failed is sent with the next one."""
    asked: list[tuple[Any, int]] = []

    def read(known: Any, version: int) -> Any:
        asked.append((dict(known), version))
        return {"row": version}

    monkeypatch.setattr(board, "PERIOD_SECONDS", 0.01)
    monkeypatch.setattr(board, "read_board", read)
    monkeypatch.setattr(board, "read_elsewhere", _failing_once([]))
    reader, news = BoardReader(), asyncio.Event()
    async with reader.watching(news), asyncio.timeout(5):
        for _ in range(2):
            await news.wait()
            news.clear()
    assert asked[:2] == [({}, 1), ({}, 1)]


async def test_a_session_that_failed_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_reads, "look", _failing_once(session_reads.Look("state", 7, [])))
    news = asyncio.Event()
    async with Feeds().watching(uuid4(), "stdout", news) as feed, asyncio.timeout(5):
        await news.wait()
        assert feed.end == 7
