"""Server side of output: each byte is taken once, and no more are in flight than granted."""

from typing import Final

from controller_client.protocol.errors import (
    BadFrame,
    LocalProtocolError,
    OffsetAhead,
    WindowViolated,
)
from controller_client.protocol.limits import (
    CONNECTION_WINDOW_BYTES,
    MAX_CHUNK_BYTES,
    SESSION_WINDOW_BYTES,
)

# Offsets are stored in signed 64-bit columns, which a peer must not be able to overflow.
_MAX_OFFSET: Final = 2**63 - 1


class StreamReceiver:
    """One stream: ``expected`` is the offset of the next byte that is new."""

    def __init__(self, expected: int, *, stream: str = "stdout") -> None:
        self.expected = expected
        self._stream = stream

    def accept(self, offset: int, data: bytes) -> tuple[int, bytes]:
        """Return the offset and the bytes that are new: all, those after the known ones, or none.

        Raises OffsetAhead if bytes are missing in front, BadFrame for a chunk or an offset out of
        bounds. An error changes nothing.
        """
        if len(data) > MAX_CHUNK_BYTES:
            raise BadFrame(f"a chunk of {len(data)} bytes is over the limit of {MAX_CHUNK_BYTES}")
        end = offset + len(data)
        self._check(offset, end)
        start = self.expected
        if end <= start:
            return start, b""
        self.expected = end
        return start, data[start - offset :]

    def accept_gap(self, from_offset: int, to_offset: int) -> tuple[int, int] | None:
        """Return the new part of a gap, None if there is none. Raises as ``accept`` does."""
        self._check(from_offset, to_offset)
        start = self.expected
        if to_offset <= start:
            return None
        self.expected = to_offset
        return start, to_offset

    def _check(self, start: int, end: int) -> None:
        if not 0 <= start <= end <= _MAX_OFFSET:
            raise BadFrame("an output range is out of bounds")
        if start > self.expected:
            raise OffsetAhead(self._stream, self.expected, start)


class ReceiveWindow:
    """The bytes received on one connection and not committed yet, per session and in all.

    One chunk over either window is tolerated, because a sender that stops once its window is full
    exceeds the window by up to that much.
    """

    def __init__(
        self,
        *,
        session_window_bytes: int = SESSION_WINDOW_BYTES,
        connection_window_bytes: int = CONNECTION_WINDOW_BYTES,
    ) -> None:
        self._session_limit = session_window_bytes + MAX_CHUNK_BYTES
        self._connection_limit = connection_window_bytes + MAX_CHUNK_BYTES
        self._per_session: dict[str, int] = {}
        self.in_flight_bytes = 0

    def received(self, session_id: str, size: int) -> None:
        """Count ``size`` raw bytes that arrived.

        Raises WindowViolated, without counting them, if they exceed a window.
        """
        in_session = self._per_session.get(session_id, 0) + size
        in_all = self.in_flight_bytes + size
        if in_session > self._session_limit:
            raise WindowViolated(in_session, self._session_limit)
        if in_all > self._connection_limit:
            raise WindowViolated(in_all, self._connection_limit)
        if in_session:
            self._per_session[session_id] = in_session
        self.in_flight_bytes = in_all

    def committed(self, session_id: str, size: int) -> None:
        """Take back ``size`` bytes that ``received`` counted: stored now, or known before.

        Raises LocalProtocolError if fewer bytes are counted.
        """
        left = self._per_session.get(session_id, 0) - size
        if left < 0:
            raise LocalProtocolError(f"{-left} bytes more were committed than received")
        self.in_flight_bytes -= size
        if left:
            self._per_session[session_id] = left
        else:
            self._per_session.pop(session_id, None)
