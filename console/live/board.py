"""The board: one reader for everybody in this process who looks at it, and what each is sent.

The reader reads all active sessions about once a second, and only while somebody looks. What those
with the same rights and filters see of them is worked out once for all of them. Each browser is
sent what changed since the board that it has shown, so a slow browser gets fewer boards and grows
no queue.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from uuid import UUID
from weakref import WeakKeyDictionary

import msgspec

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


class Part(NamedTuple):
    """The board as a person sees it: counts, the wanted rows, and the number of the others."""

    counts: Counts
    rows: dict[UUID, Row]
    hidden: int


class BoardReader:
    """The active sessions as they were read last.

    ``changed`` is the version that last differed from the one before.
    """

    def __init__(self) -> None:
        self.known: dict[UUID, Known] = {}
        self.elsewhere: list[Elsewhere] = []
        self.version = self.changed = 0
        self._parts: dict[tuple[object, ...], Part] = {}
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
                # Both or none: rows of a version that nobody was told of would not be sent again.
                self._keep(*await at_length(self._read))
            except StorageUnavailable:
                # The connections of the browsers notice it, too, and say so.
                pass
            except Exception:
                # One row that cannot be shown must not stop the boards of everybody for good.
                logger.exception("the board could not be read")
            for watcher in self._watchers:
                watcher.set()
            await asyncio.sleep(PERIOD_SECONDS)

    def _read(self) -> tuple[dict[UUID, Known], list[Elsewhere]]:
        return read_board(self.known, self.version + 1), read_elsewhere()

    def _keep(self, known: dict[UUID, Known], elsewhere: list[Elsewhere]) -> None:
        self.version += 1
        is_same = known.keys() == self.known.keys() and elsewhere == self.elsewhere
        if not is_same or any(each.version == self.version for each in known.values()):
            self.changed = self.version
        self.known, self.elsewhere, self._parts = known, elsewhere, {}

    def part(self, person: Person, wanted: WatchBoard) -> Part:
        """The board as this person sees it, worked out once for all who see the same."""
        rights = (person.projects, person.may_list, person.may_read)
        asked = (*rights, *msgspec.structs.astuple(wanted))
        if (part := self._parts.get(asked)) is None:
            part = self._parts[asked] = self._part(person, wanted)
        return part

    def _part(self, person: Person, wanted: WatchBoard) -> Part:
        visible = {
            key: each for key, each in self.known.items() if person.sees(each.active.project_id)
        }
        groups = Counter(each.row.group for each in visible.values())
        elsewhere = (each.events for each in self.elsewhere if person.sees(each.project_id))
        counts = Counts(**groups, elsewhere=sum(elsewhere))
        if wanted.counts_only:
            return Part(counts, {}, 0)
        now = clock.now()
        rows = {
            key: row
            for key, each in visible.items()
            if wants(wanted, row := each.row if person.may_read else without_text(each.row), now)
        }
        return Part(counts, rows, len(visible) - len(rows))


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
        self._version = self._seen = self._looked = 0
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
                if board.version and self._seen == self._version and self._has_news(board):
                    await self._send_changes(board)

    def _has_news(self, board: BoardReader) -> bool:
        """False if a look would find nothing. With time a session becomes one that is silent."""
        newest = board.version if self._wanted.since else board.changed
        return self._is_whole or newest > self._looked

    async def _send_changes(self, board: BoardReader) -> None:
        part = board.part(self._person, self._wanted)
        message = Board(
            version=board.version,
            counts=part.counts,
            hidden=part.hidden,
            is_whole=self._is_whole,
        )
        self._looked = board.version
        if not self._wanted.counts_only:
            self._add_rows(message, part.rows, board.known)
        told = (part.counts, part.hidden)
        if message.rows or message.gone or message.is_whole or told != self._told:
            self._is_whole, self._told, self._version = False, told, board.version
            await self._send(message)

    def _add_rows(self, message: Board, rows: dict[UUID, Row], known: dict[UUID, Known]) -> None:
        before = {} if self._is_whole else self._sent
        message.gone = [str(key) for key in before if key not in rows]
        message.rows = [row for key, row in rows.items() if before.get(key) != known[key].version]
        self._sent = {key: known[key].version for key in rows}
