"""The newest output of a watched session, kept for everybody who watches it. Pure."""

from collections import deque
from typing import Final, NamedTuple

MEMORY_BYTES: Final = 1024 * 1024
"""A watched session costs a server process at most this much memory."""
_JOINED_BYTES: Final = 16 * 1024


class Piece(NamedTuple):
    """Output ``[offset, end)``: its bytes, or the reason why they are gone."""

    offset: int
    end: int
    data: bytes
    gap_reason: str = ""

    def after(self, offset: int, max_bytes: int) -> "Piece":
        """The part of the piece from ``offset`` on, at most ``max_bytes`` of it."""
        if self.gap_reason:
            return self._replace(offset=offset)
        data = self.data[offset - self.offset :][:max_bytes]
        return Piece(offset, offset + len(data), data)


class Memory:
    """The newest pieces of a stream, without a hole between them."""

    def __init__(self, offset: int) -> None:
        self.restart(offset)

    @property
    def start(self) -> int:
        """The offset of the oldest byte that is kept."""
        return self._pieces[0].offset if self._pieces else self.end

    def add(self, piece: Piece) -> None:
        """Keep a piece that begins where the last one ended; drop the oldest ones over the limit.

        Small pieces are joined: each key that is echoed is one.
        """
        last = self._pieces[-1] if self._pieces else None
        if last and not (last.gap_reason or piece.gap_reason) and len(last.data) < _JOINED_BYTES:
            self._pieces[-1] = Piece(last.offset, piece.end, last.data + piece.data)
        else:
            self._pieces.append(piece)
        self.end = piece.end
        self._size += len(piece.data)
        while self._size > MEMORY_BYTES and len(self._pieces) > 1:
            self._size -= len(self._pieces.popleft().data)

    def restart(self, offset: int) -> None:
        """Forget everything: the stream goes on at ``offset``."""
        self.end = offset
        self._pieces: deque[Piece] = deque()
        self._size = 0

    def after(self, offset: int, max_bytes: int) -> Piece | None:
        """The piece that goes on at ``offset``; None if it is not kept, or not there yet."""
        for piece in reversed(self._pieces):
            if piece.offset <= offset < piece.end:
                return piece.after(offset, max_bytes)
            if piece.end <= offset:
                return None
        return None
