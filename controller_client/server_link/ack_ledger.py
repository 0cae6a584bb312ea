"""A ledger of the acknowledgements of one session's output.

The server acknowledges what it has committed, and the holder frees its memory when it is told. The
ledger collects acknowledgements between the two: every one reaches the holder in the end, and none
reaches it twice. The ledger does no I/O; its owner decides when to take what is pending, or lets an
AckCourier say so.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from controller_client.protocol.messages import Ack, Gap, InteractiveOutput, Stream, StreamOffset

# Each message wakes the holder, so acknowledgements are collected. They are passed on when they
# free ACK_BYTES of the holder's memory (or an eighth of its window), after ACK_SECONDS, or with a
# command.
ACK_BYTES: Final = 16 * 1024
ACK_SECONDS: Final = 0.5


def end_of(message: InteractiveOutput | Gap) -> StreamOffset:
    """Return the offset that acknowledges a message of output."""
    end = message.to_offset if isinstance(message, Gap) else message.offset + len(message.data)
    return StreamOffset(session_id=message.session_id, stream=message.stream, offset=end)


class AckLedger:
    """For each stream, the offset that the server committed and the offset the holder was told."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        # The server has every byte before these offsets.
        self.committed: dict[Stream, int] = {}
        self._told: dict[Stream, int] = {}

    @property
    def pending_bytes(self) -> int:
        """The bytes that the server has committed and the holder still keeps."""
        return sum(offset - self._told.get(stream, 0) for stream, offset in self.committed.items())

    def begin(self, committed: Mapping[Stream, int]) -> None:
        """Start again from the offsets that a new connection of the server names."""
        self.committed = dict(committed)

    def commit(self, offsets: Iterable[StreamOffset]) -> None:
        """Record offsets that the server has acknowledged."""
        for position in offsets:
            self.committed[position.stream] = position.offset

    def take_all(self) -> list[StreamOffset]:
        """Return all offsets, for HOLDER_ATTACH: the holder starts there, whatever it was told."""
        self._told = dict(self.committed)
        return self._offsets(self._told)

    def take_pending(self) -> list[Ack]:
        """Return the offsets that the holder was not told yet, as one message or none."""
        news = {
            stream: offset
            for stream, offset in self.committed.items()
            if offset > self._told.get(stream, 0)
        }
        self._told |= news
        return [Ack(offsets=self._offsets(news))] if news else []

    def _offsets(self, positions: Mapping[Stream, int]) -> list[StreamOffset]:
        return [
            StreamOffset(session_id=self._session_id, stream=stream, offset=offset)
            for stream, offset in positions.items()
        ]


class AckCourier(AckLedger):
    """A ledger that calls ``pass_on`` when what is pending is due."""

    def __init__(self, session_id: str, pass_on: Callable[[], None]) -> None:
        super().__init__(session_id)
        self._pass_on = pass_on
        self._timer: asyncio.TimerHandle | None = None

    def commit_soon(self, offsets: Iterable[StreamOffset], window_bytes: int) -> None:
        """Record offsets that a holder with this window waits for."""
        self.commit(offsets)
        if self.pending_bytes >= min(ACK_BYTES, window_bytes // 8):
            self._pass_on()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ACK_SECONDS, self._pass_on)

    def take_all(self) -> list[StreamOffset]:
        """Return all offsets, as the ledger does; nothing is due any more."""
        self.stop()
        return super().take_all()

    def take_pending(self) -> list[Ack]:
        """Return what is pending, as the ledger does; nothing is due any more."""
        self.stop()
        return super().take_pending()

    def stop(self) -> None:
        """Let nothing be due until the next offset comes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
