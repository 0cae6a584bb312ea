"""One browser that watches one session: sends what is new, and no more than the browser shows.

The browser says how far its screen is. What is under way is bounded, so a slow browser grows no
queue: it skips to the newest screen, and is told how much it missed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from console.live import session_reads
from console.live.feed import Feed, feeds
from console.live.memory import Piece
from console.live.messages import Begin, Gap, Output, Refused, Session, ToBrowser
from controller_client.protocol.messages import Stream
from projects.output.view import STDOUT
from projects.storage.access import at_length

WINDOW_BYTES: Final = 256 * 1024
"""So much output may be under way to a browser."""
FRAME_BYTES: Final = 64 * 1024
MAX_LAG_BYTES: Final = 768 * 1024
"""A browser that is further behind skips. It is less than what a feed keeps in memory."""

Send = Callable[[ToBrowser], Awaitable[None]]


class Watcher:
    """The view of a stream of one session in one browser, from ``offset`` on.

    The state of the session comes with standard output, which is that of a terminal, too.
    """

    def __init__(self, session_id: UUID, stream: Stream, offset: int | None, send: Send) -> None:
        self.session_id, self._stream = session_id, stream
        self._offset = -1 if offset is None else offset
        # Nothing before the offset is under way to a browser that goes on there.
        self._seen = self._offset
        self._send = send
        self._news = asyncio.Event()
        self._told: Session | None = None

    def seen(self, offset: int) -> None:
        """The browser shows everything up to ``offset``."""
        has_waited = self._offset - self._seen >= WINDOW_BYTES
        self._seen = max(self._seen, min(offset, self._offset))
        if has_waited:
            self._news.set()

    async def watch(self) -> None:
        """Send until cancelled, or until the session is deleted."""
        async with feeds().watching(self.session_id, self._stream, self._news) as feed:
            while not feed.is_gone:
                self._news.clear()
                if feed.session is None or not await self._send_next(feed, feed.session):
                    await self._news.wait()
        await self._send(Refused("watch_session", "SESSION_NOT_FOUND", "the session was deleted"))

    async def _send_next(self, feed: Feed, session: Session) -> bool:
        """Send the state if it changed, and the next piece. Returns False if there is nothing."""
        if session != self._told and self._stream == STDOUT:
            self._told = session
            await self._send(session)
        if self._offset < 0:
            await self._begin_at(feed.end, skipped=0)
            return True
        if self._offset - self._seen >= WINDOW_BYTES:
            return False
        behind = feed.end - self._offset
        if behind == 0:
            return False
        if not 0 < behind <= MAX_LAG_BYTES:
            await self._begin_at(feed.end, skipped=max(0, behind))
            return True
        return await self._send_piece(await self._next_piece(feed))

    async def _next_piece(self, feed: Feed) -> Piece | None:
        """From memory; only what is older is read for this browser alone."""
        piece = feed.memory.after(self._offset, FRAME_BYTES)
        if piece is None and self._offset < feed.memory.start:
            end = min(self._offset + FRAME_BYTES, feed.memory.start)
            found = await at_length(
                session_reads.read, self.session_id, self._stream, self._offset, end
            )
            piece = found[0] if found else None
        return piece

    async def _send_piece(self, piece: Piece | None) -> bool:
        if piece is None:
            return False
        self._offset = piece.end
        if piece.gap_reason:
            self._seen = max(self._seen, piece.end)
            await self._send(Gap(piece.offset, piece.end, piece.gap_reason, self._stream))
        else:
            await self._send(Output(piece.offset, piece.data, self._stream))
        return True

    async def _begin_at(self, end: int, *, skipped: int) -> None:
        """Begin anew where the screen at ``end`` can be drawn from."""
        found = await at_length(session_reads.beginning, self.session_id, self._stream, end)
        skipped = max(0, skipped - (end - found.offset)) if skipped else found.offset
        self._offset = self._seen = found.offset
        await self._send(Begin(found.offset, skipped, found.is_alternate, self._stream))
