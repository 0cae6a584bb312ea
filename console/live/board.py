"""The board: one reader for everybody in this process who looks at it, and what each is sent.

The reader reads all active sessions about once a second, and only while somebody looks. Each
browser is sent what changed since the board that it has shown, so a slow browser gets fewer boards
and grows no queue.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

from console.live.board_filter import wants
from console.live.board_reads import (
    Elsewhere,
    Known,
    read_board,
    read_elsewhere,
    without_text,
)
from console.live.messages import Board, Counts, Row, ToBrowser, WatchBoard
from console.live.person import Person
from projects.errors.server import StorageUnavailable
from projects.storage import clock
from projects.storage.access import at_length

logger = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 0.8

Send = Callable[[ToBrowser], Awaitable[None]]


class BoardReader:
    """The active sessions as they were read last."""

    def __init__(self) -> None:
        self.known: dict[UUID, Known] = {}
        self.elsewhere: list[Elsewhere] = []
        self.version = 0
        self._watchers: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def watching(self, watcher: asyncio.Event) -> AsyncIterator[None]:
        """Inside, the board is read, and ``watcher`` is set after each read."""
        self._watchers.add(watcher)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="board")
        try:
            yield
        finally:
            self._watchers.discard(watcher)
            if not self._watchers:
                self._task.cancel()
                self._task = None

    async def _run(self) -> None:
        while True:
            try:
                known = await at_length(read_board, self.known, self.version + 1)
                # Both or none: rows of a version that nobody was told of would not be sent again.
                self.elsewhere = await at_length(read_elsewhere)
                self.known, self.version = known, self.version + 1
            except StorageUnavailable:
                # The connections of the browsers notice it, too, and say so.
                pass
            except Exception:
                # One row that cannot be shown must not stop the boards of everybody for good.
                logger.exception("the board could not be read")
            for watcher in self._watchers:
                watcher.set()
            await asyncio.sleep(PERIOD_SECONDS)


_readers: "WeakKeyDictionary[asyncio.AbstractEventLoop, BoardReader]" = WeakKeyDictionary()


def reader() -> BoardReader:
    """The reader of the running event loop."""
    return _readers.setdefault(asyncio.get_running_loop(), BoardReader())


class BoardView:
    """The board in one browser, for a person whose rights may change meanwhile."""

    def __init__(self, person: Person, send: Send, wanted: WatchBoard) -> None:
        self._person = person
        self._send = send
        self._wanted = wanted
        self._told: tuple[Counts, int] | None = None
        self._sent: dict[UUID, int] = {}
        self._version = self._seen = 0
        self._is_whole = True
        self._news = asyncio.Event()

    def seen(self, version: int) -> None:
        """The browser shows the board of this version."""
        self._seen = max(self._seen, min(version, self._version))
        self._news.set()

    def change_rights(self, person: Person) -> None:
        """Show from now on what ``person`` may see."""
        if person != self._person:
            self._person, self._is_whole = person, True
            self._news.set()

    async def watch(self) -> None:
        """Send what changes, until cancelled."""
        board = reader()
        async with board.watching(self._news):
            while True:
                await self._news.wait()
                self._news.clear()
                if board.version and self._seen == self._version:
                    await self._send_changes(board)

    async def _send_changes(self, board: BoardReader) -> None:
        visible = {
            key: each
            for key, each in board.known.items()
            if self._person.sees(each.active.project_id)
        }
        groups = Counter(each.row.group for each in visible.values())
        elsewhere = (each for each in board.elsewhere if self._person.sees(each.project_id))
        counts = Counts(**groups, elsewhere=sum(each.events for each in elsewhere))
        message = Board(version=board.version, counts=counts, is_whole=self._is_whole)
        if not self._wanted.counts_only:
            self._add_rows(message, visible)
        told = (counts, message.hidden)
        if message.rows or message.gone or message.is_whole or told != self._told:
            self._is_whole, self._told, self._version = False, told, board.version
            await self._send(message)

    def _add_rows(self, message: Board, visible: dict[UUID, Known]) -> None:
        now = clock.now()
        shown = {
            key: row
            for key, each in visible.items()
            if wants(self._wanted, row := self._row(each), now)
        }
        before = {} if self._is_whole else self._sent
        message.hidden = len(visible) - len(shown)
        message.gone = [str(key) for key in before if key not in shown]
        message.rows = [
            row for key, row in shown.items() if before.get(key) != visible[key].version
        ]
        self._sent = {key: visible[key].version for key in shown}

    def _row(self, known: Known) -> Row:
        return known.row if self._person.may_read else without_text(known.row)
