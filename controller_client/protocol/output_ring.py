"""A buffer of one stream under absolute offsets: its newest bytes that were not released yet.

Offsets count from the first byte the program ever wrote and are never reused. Append, release and
read cost what they move and nothing else, however much is held; an empty ring holds no buffer.
"""

from collections import deque
from hashlib import sha256
from typing import Final

from controller_client.protocol.errors import LocalProtocolError
from controller_client.protocol.limits import RING_BYTES

# Small, so that a first segment that is partly released wastes little memory. Large, so that 10 MiB
# are few segments.
_SEGMENT_BYTES: Final = 64 * 1024


class OutputRing:
    """The bytes ``[first_offset, next_offset)``; over ``capacity_bytes`` the oldest are dropped."""

    def __init__(self, capacity_bytes: int = RING_BYTES) -> None:
        if capacity_bytes <= 0:
            raise LocalProtocolError(f"a ring of {capacity_bytes} bytes cannot hold anything")
        self.capacity_bytes: Final = capacity_bytes
        self.first_offset = 0
        self.next_offset = 0
        # Segment n holds [_origin + n * _SEGMENT_BYTES, ...); only the last one may be short.
        self._segments: deque[bytearray] = deque()
        self._origin = 0
        self._digest = sha256()

    @property
    def size_bytes(self) -> int:
        """The number of bytes that are held."""
        return self.next_offset - self.first_offset

    @property
    def free_bytes(self) -> int:
        """The number of bytes that fit before the oldest are dropped."""
        return self.capacity_bytes - self.size_bytes

    def append(self, data: bytes) -> tuple[int, int] | None:
        """Add ``data`` at ``next_offset``.

        Returns the range ``[from, to)`` of unreleased bytes that this dropped, if any.
        """
        self._digest.update(data)
        old_first, start = self.first_offset, self.next_offset
        end = start + len(data)
        new_first = max(old_first, end - self.capacity_bytes)
        # Old bytes go first, so that the ring never exceeds its capacity, not even for a moment.
        self._drop_before(min(new_first, start))
        if new_first > start:
            data = data[new_first - start :]
            self._origin = new_first
        self.first_offset, self.next_offset = new_first, end
        self._store(data)
        return (old_first, new_first) if new_first > old_first else None

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return up to ``max_bytes`` from ``offset`` on; empty at the end.

        Raises LocalProtocolError for an offset that is not held.
        """
        if not self.first_offset <= offset <= self.next_offset or max_bytes < 0:
            raise LocalProtocolError(
                f"cannot read {max_bytes} bytes at {offset} of [{self.first_offset}, "
                f"{self.next_offset})"
            )
        wanted = min(max_bytes, self.next_offset - offset)
        index, skip = divmod(offset - self._origin, _SEGMENT_BYTES)
        pieces: list[memoryview] = []
        while wanted > 0:
            piece = memoryview(self._segments[index])[skip : skip + wanted]
            pieces.append(piece)
            wanted -= len(piece)
            index, skip = index + 1, 0
        return b"".join(pieces)

    def release(self, offset: int) -> None:
        """Forget everything before ``offset``; an old offset is ignored.

        Raises LocalProtocolError past the end.
        """
        if offset > self.next_offset:
            raise LocalProtocolError(
                f"cannot release up to {offset}: the stream ends at {self.next_offset}"
            )
        if offset > self.first_offset:
            self._drop_before(offset)
            self.first_offset = offset

    def sha256_hex(self) -> str:
        """Return the SHA-256 of every byte ever appended, held or not."""
        return self._digest.hexdigest()

    def _store(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            if not self._segments or len(self._segments[-1]) == _SEGMENT_BYTES:
                self._segments.append(bytearray())
            last = self._segments[-1]
            room = _SEGMENT_BYTES - len(last)
            last += view[:room]
            view = view[room:]

    def _drop_before(self, offset: int) -> None:
        if offset == self.next_offset:
            self._segments.clear()
            self._origin = offset
            return
        while offset - self._origin >= _SEGMENT_BYTES:
            self._segments.popleft()
            self._origin += _SEGMENT_BYTES
