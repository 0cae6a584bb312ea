"""A ledger of the acknowledgements of one session's output.

The server acknowledges what it has committed, and the holder frees its memory when it is told. The
ledger collects acknowledgements between the two: every one reaches the holder in the end, and none
reaches it twice. The ledger does no I/O; its owner decides when to take what is pending.
"""

from collections.abc import Iterable, Mapping

from controller_client.protocol.messages import Ack, Stream, StreamOffset


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
