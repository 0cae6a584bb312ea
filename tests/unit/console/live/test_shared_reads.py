"""Pages that show the same thing cost one read, however many of them are open."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from console.live import board, board_reads, feed, person, session_reads
from console.live.board import BoardView, reader
from console.live.desk import Desk
from console.live.feed import Feeds
from console.live.messages import Board, Row, WatchBoard, WatchSession
from console.live.person import Checks, LoginEnded, Person, seconds_to_check
from console.live.watcher import Watcher
from projects import services
from projects.models import Controller
from projects.storage import clock
from projects.storage.access import at_length
from projects.wakeups.doorbells import ring_session
from tests.unit.console.conftest import Tenant

pytestmark = pytest.mark.django_db(transaction=True)
_PERSON = Person(1, "admin:ada", None, may_list=True, may_read=True, may_type=True)
_PAGES = 10
_TEXTS = ("id", "waits", "doing", "host", "project", "kind", "command", "prompt")
_ROW = Row(
    **dict.fromkeys([*_TEXTS, "last_line", "started_by", "ends_at"], ""),
    group="works",
    since="2026-11-23T10:00:00+00:00",
    is_paused=False,
)


# ---- a session -----------------------------------------------------------------------------------


class _Looks:
    """Looks at a session of which each finds something new."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_arguments: object) -> Any:
        self.count += 1
        return SimpleNamespace(message=f"state {self.count}", end=0, pieces=[])

    async def until(self, count: int, news: asyncio.Event) -> None:
        """Wait until the watcher has heard of so many looks."""
        async with asyncio.timeout(60):
            while self.count < count:
                await news.wait()
                news.clear()


async def test_what_rings_in_a_turn_is_one_read_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "CALM_SECONDS", 3600.0)
    looks, news, session_id = _Looks(), asyncio.Event(), uuid4()
    monkeypatch.setattr(session_reads, "look", looks)
    feeds = Feeds()
    async with feeds.watching(session_id, "stdout", news):
        await looks.until(2, news)
        counts = []
        for _ in range(4):
            await ring_session(session_id)
            # A look that the ring led to would come before this read.
            await at_length(int)
            counts.append(looks.count)
        # After the first ring the feed looks no longer by itself, either.
        before = counts[0]
        assert counts == [before] * 4
        # As when the calm is over.
        feeds.hurry(session_id)
        await looks.until(before + 1, news)
        assert looks.count == before + 1


async def test_a_feed_hurries_for_a_person_who_types(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "CALM_SECONDS", 3600.0)
    looks, news, session_id = _Looks(), asyncio.Event(), uuid4()
    monkeypatch.setattr(session_reads, "look", looks)
    feeds = Feeds()
    async with feeds.watching(session_id, "stdout", news):
        await looks.until(2, news)
        for is_rung_first in (True, False):
            before = looks.count
            if is_rung_first:
                await ring_session(session_id)
            feeds.hurry(session_id)
            await ring_session(session_id)
            await looks.until(before + 1, news)


async def _asked(*_arguments: object, **_named: object) -> None:
    """Nobody else has the keyboard here."""


async def test_whatever_an_operator_wants_lets_the_feed_hurry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed, "CALM_SECONDS", 3600.0)
    looks, news, session_id = _Looks(), asyncio.Event(), uuid4()
    opened = session_reads.Opened(uuid4(), ("stdout",))
    monkeypatch.setattr(session_reads, "look", looks)
    monkeypatch.setattr(session_reads, "open_session", lambda *_: opened)
    monkeypatch.setattr(services, "session_keyboard_ask", _asked)
    desk = Desk("key", _PERSON, _asked)
    await desk.open(WatchSession(session_id))
    async with feed.feeds().watching(session_id, "stdout", news):
        await looks.until(2, news)
        await ring_session(session_id)
        await desk.ask()
        await looks.until(3, news)


async def test_a_browser_that_keeps_up_wakes_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, sent, session_id = _Looks(), asyncio.Queue[Any](), uuid4()
    monkeypatch.setattr(session_reads, "look", looks)
    tries, send_next = list[object](), Watcher._send_next

    async def counted(*arguments: Any) -> bool:
        tries.append(arguments)
        return await send_next(*arguments)

    monkeypatch.setattr(Watcher, "_send_next", counted)
    watcher = Watcher(session_id, "stdout", 0, sent.put)
    watching = asyncio.create_task(watcher.watch())
    async with asyncio.timeout(60):
        while await sent.get() != "state 2":
            pass
        before = len(tries)
        watcher.seen(0)
        await ring_session(session_id)
        assert await sent.get() == "state 3"
    assert len(tries) == before + 1
    watching.cancel()


# ---- the board -----------------------------------------------------------------------------------


class _Pages:
    """Boards of many pages of one person, over one session that does not change."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, wanted: WatchBoard, answers: Any) -> None:
        self.asked = 0
        self.sent: asyncio.Queue[Any] = asyncio.Queue()
        self.views = [BoardView(_PERSON, self.sent.put, wanted) for _ in range(_PAGES)]
        self._answers = answers
        known = SimpleNamespace(active=SimpleNamespace(project_id=uuid4()), row=_ROW, version=1)
        monkeypatch.setattr(board, "PERIOD_SECONDS", 0.01)
        monkeypatch.setattr(board, "read_board", lambda *_: {"id": known})
        monkeypatch.setattr(board, "read_elsewhere", list)
        monkeypatch.setattr(board, "wants", self._wants)

    def _wants(self, *_arguments: object) -> bool:
        self.asked += 1
        return bool(next(self._answers, True))

    async def shown(self) -> list[Board]:
        """The next board of each page, all of which say that they show it."""
        boards = [await self.sent.get() for _ in self.views]
        for view in self.views:
            view.seen(boards[0].version)
        return boards


async def _with(pages: _Pages, body: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        watching = [tasks.create_task(view.watch()) for view in pages.views]
        await body()
        for task in watching:
            task.cancel()


async def test_what_many_pages_show_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = _Pages(monkeypatch, WatchBoard(), iter([]))

    async def body() -> None:
        assert [one.rows for one in await pages.shown()] == [[_ROW]] * _PAGES
        news = asyncio.Event()
        async with reader().watching(news):
            for _ in range(5):
                await news.wait()
                news.clear()
        assert pages.asked == 1

    await _with(pages, body)


async def test_a_session_that_falls_silent_comes_to_its_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = _Pages(monkeypatch, WatchBoard(since="5m"), iter([False]))

    async def body() -> None:
        assert [one.hidden for one in await pages.shown()] == [1] * _PAGES
        assert [one.rows for one in await pages.shown()] == [[_ROW]] * _PAGES

    await _with(pages, body)


def test_a_session_as_it_was_is_not_made_anew(
    ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = board_reads.read_board({}, 1)
    assert first[ours.session.pk].row.group == "away"
    for version, hours in ((2, 1), (3, 2)):
        # A host renews its lease all the time, and only the first one is news.
        Controller.objects.update(lease_expires_at=clock.now() + timedelta(hours=hours))
        first = board_reads.read_board(first, version)
        assert (first[ours.session.pk].version, first[ours.session.pk].row.group) == (2, "works")
        monkeypatch.setattr(board_reads, "typed", None)


# ---- rights --------------------------------------------------------------------------------------


async def test_pages_of_one_login_share_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, asked = threading.Event(), list[str]()

    def read(key: str) -> Person:
        asked.append(key)
        begun.wait(60)
        if len(asked) == 1:
            raise LoginEnded
        return _PERSON

    monkeypatch.setattr(person, "person_of", read)
    checks = Checks()
    pages = [asyncio.create_task(checks.person_of("key")) for _ in range(_PAGES)]
    gone = pages.pop()
    while not asked:
        await asyncio.to_thread(int)
    gone.cancel()
    begun.set()
    found = await asyncio.gather(*pages, return_exceptions=True)
    assert [type(one) for one in found] == [LoginEnded] * (_PAGES - 1)
    assert asked == ["key"]
    # What was read for an earlier check answers no later one.
    assert await checks.person_of("key") == _PERSON


async def test_the_pages_of_a_login_are_checked_at_its_own_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    times = {uuid4().hex: list[float]() for _ in range(100)}
    for moment in (1000.0, 1000.7, 1001.9):
        monkeypatch.setattr(loop, "time", lambda now=moment: now)
        for key, found in times.items():
            found.append(moment + seconds_to_check(key, 2.0))
            assert moment < found[-1] <= moment + 2.0
        monkeypatch.undo()
    # Pages that were opened at different times are checked at the same moment.
    apart = [(one - found[0]) % 2.0 for found in times.values() for one in found]
    assert all(min(one, 2.0 - one) < 0.001 for one in apart)
    assert len({round(found[0], 1) for found in times.values()}) > 10
