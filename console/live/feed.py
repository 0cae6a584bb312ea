"""The feed of a watched session: one reader for everybody in this process who watches it.

The feed looks at the database after the session's doorbell rang, and once a second. It keeps the
newest output (``console.live.memory``) and the newest state, and tells its watchers that there is
something new. A feed begins with its first watcher and ends with its last one, so nothing is done
for a session that nobody watches.

The bell rings several times in a turn of an agent. A feed lets CALM_SECONDS pass, so that all of a
turn is one read and one frame to each page, and is not done while the agent waits. Nobody who only
looks sees that. Somebody who types does, so a feed hurries for those.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

from console.live import session_reads
from console.live.memory import Memory
from console.live.messages import Session
from console.live.session_reads import READ_BYTES
from controller_client.protocol.messages import Stream
from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.errors.sessions import SessionNotFound
from projects.output.recording.timeline import STREAMS
from projects.storage.access import at_length
from projects.wakeups.doorbells import Doorbell, session_doorbell

logger = logging.getLogger(__name__)

CALM_SECONDS: Final = 0.1
"""From the ring of a session that nobody here types into to the look at it."""
HURRY_SECONDS: Final = 2.0
"""So long after a key or any other wish of an operator each ring is followed at once."""
BYTES_PER_SECOND: Final = 512 * 1024
"""A session that prints faster is read at this rate, and watchers skip what they cannot see."""
MAX_BEHIND_BYTES: Final = 1024 * 1024
"""A feed that is further behind goes on with the newest output."""


class Feed:
    """The state of one session, and a stream of its output, which goes to ``end``.

    ``session`` is None until the first look, or once it is gone. ``is_gone``: the session was
    deleted.
    """

    def __init__(self, session_id: UUID, stream: Stream) -> None:
        self.session_id, self.stream = session_id, stream
        self.session: Session | None = None
        self.end = 0
        self.is_gone = False
        self.memory = Memory(0)
        self.watchers: set[asyncio.Event] = set()
        self._hurries_until = 0.0
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Follow each ring at once for a while: a person waits for what they typed."""
        self._hurries_until = time.monotonic() + HURRY_SECONDS
        self._hurried.set()

    async def run(self) -> None:
        """Look for news until cancelled."""
        async with session_doorbell(self.session_id) as bell:
            await self._begin()
            while not self.is_gone:
                read_bytes = await self._look()
                if read_bytes:
                    # Nobody reads faster. One key that is echoed waits for less than a millisecond.
                    await asyncio.sleep(read_bytes / BYTES_PER_SECOND)
                if read_bytes < READ_BYTES:
                    await self._hear(bell)

    async def _begin(self) -> None:
        """Find the end of the output: what came before is read for each watcher who wants it."""
        while self.session is None and not self.is_gone:
            await self._look(is_first=True)
            if self.session is None and not self.is_gone:
                await asyncio.sleep(conf.safety_net_seconds)

    async def _hear(self, bell: Doorbell) -> None:
        is_rung = await bell.wait(conf.safety_net_seconds)
        if not is_rung or time.monotonic() < self._hurries_until:
            return
        self._hurried.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(CALM_SECONDS):
                await self._hurried.wait()
        # The look that comes now is the answer to what rang meanwhile, too.
        await bell.wait(0)

    async def _look(self, *, is_first: bool = False) -> int:
        """Look once. Returns the number of bytes that were read."""
        offset = 2**62 if is_first else self.memory.end
        try:
            seen = await at_length(session_reads.look, self.session_id, self.stream, offset)
        except StorageUnavailable:
            return 0
        except SessionNotFound:
            self.is_gone, self.session = True, None
            self._tell()
            return 0
        except Exception:
            # Those who watch would wait for ever, and so would everybody who comes later.
            logger.exception("session %s could not be read", self.session_id)
            return 0
        if is_first or not -1 < seen.end - self.memory.end < MAX_BEHIND_BYTES:
            # Far behind, or the database was restored from a copy that has less.
            self.memory.restart(seen.end)
            is_new = True
        else:
            for piece in seen.pieces:
                self.memory.add(piece)
            is_new = bool(seen.pieces) or self.end != seen.end
        if is_new or seen.message != self.session:
            self.session, self.end = seen.message, seen.end
            self._tell()
        return sum(len(piece.data) for piece in seen.pieces)

    def _tell(self) -> None:
        for watcher in self.watchers:
            watcher.set()


class Feeds:
    """The feeds of one event loop, by session and stream."""

    def __init__(self) -> None:
        self._running: dict[tuple[UUID, Stream], tuple[Feed, asyncio.Task[None]]] = {}

    def count(self) -> int:
        """The number of streams that somebody watches."""
        return len(self._running)

    def hurry(self, session_id: UUID) -> None:
        """Read at once what a session prints: an operator has just asked for something."""
        for stream in STREAMS:
            if running := self._running.get((session_id, stream)):
                running[0].hurry()

    @asynccontextmanager
    async def watching(
        self, session_id: UUID, stream: Stream, watcher: asyncio.Event
    ) -> AsyncIterator[Feed]:
        """The feed of a stream, inside the context. ``watcher`` is set when there is news."""
        key = (session_id, stream)
        if key not in self._running:
            feed = Feed(session_id, stream)
            task = asyncio.create_task(feed.run(), name=f"feed of session {session_id}")
            self._running[key] = (feed, task)
        feed, task = self._running[key]
        feed.watchers.add(watcher)
        try:
            yield feed
        finally:
            feed.watchers.discard(watcher)
            if not feed.watchers:
                self._running.pop(key, None)
                task.cancel()


_feeds: "WeakKeyDictionary[asyncio.AbstractEventLoop, Feeds]" = WeakKeyDictionary()


def feeds() -> Feeds:
    """The feeds of the running event loop."""
    return _feeds.setdefault(asyncio.get_running_loop(), Feeds())
