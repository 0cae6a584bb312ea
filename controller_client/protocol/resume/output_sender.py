"""Holder side of output: which bytes of a session are produced, sent and acknowledged."""

from collections import deque
from collections.abc import Mapping, Sequence

from controller_client.protocol.errors import AckAhead, LocalProtocolError
from controller_client.protocol.limits import MAX_CHUNK_BYTES, RING_BYTES
from controller_client.protocol.messages import (
    Gap,
    GapReason,
    HostTime,
    InteractiveOutput,
    Stream,
    StreamFinal,
    StreamPosition,
)
from controller_client.protocol.output_ring import OutputRing
from controller_client.protocol.resume.production_order import ProductionOrder
from controller_client.protocol.resume.production_times import ProductionTimes


class _SendState:
    """One stream: its ring, when it was produced, and how far it was sent and acknowledged.

    The server has everything before ``acknowledged``. ``sent`` is the next offset to send.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.ring = OutputRing(capacity_bytes)
        self.times = ProductionTimes()
        self.sent = 0
        self.acknowledged = 0
        # The highest offset that the server ever had. If it asks for less later, it has lost bytes:
        # the gap is not an overflow.
        self.committed = 0
        # The highest offset ever sent. An ACK above it is an error of the peer.
        self.highest_sent = 0
        self._gaps_in_flight: deque[tuple[int, int]] = deque()

    @property
    def in_flight_bytes(self) -> int:
        # A gap moves the offset without bytes in flight.
        gaps = sum(end - max(start, self.acknowledged) for start, end in self._gaps_in_flight)
        return self.sent - self.acknowledged - gaps

    @property
    def unsent_bytes(self) -> int:
        return self.ring.next_offset - max(self.sent, self.ring.first_offset)

    def rewind(self, offset: int) -> None:
        """Send from ``offset`` on, with nothing in flight."""
        self._gaps_in_flight.clear()
        self.sent = self.acknowledged = offset
        self.highest_sent = max(self.highest_sent, offset)
        self._commit(offset)

    def acknowledge(self, offset: int) -> None:
        """Take an ACK of everything before ``offset``, which is above ``acknowledged``."""
        self.acknowledged = offset
        self.sent = max(self.sent, offset)
        while self._gaps_in_flight and self._gaps_in_flight[0][1] <= offset:
            self._gaps_in_flight.popleft()
        self._commit(offset)

    def take_gap(self) -> tuple[int, int, GapReason] | None:
        """Return the gap at the send position, which moves behind it; None if there is no gap."""
        start, end = self.sent, self.ring.first_offset
        if start >= end:
            return None
        reason: GapReason = "ring_overflow"
        if start < self.committed:
            end, reason = self.committed, "lost"
        self._gaps_in_flight.append((start, end))
        self._advance(end)
        return start, end, reason

    def take_data(self, max_bytes: int) -> tuple[int, bytes]:
        """Return offset and bytes at the send position, which moves behind them."""
        start = self.sent
        end = self.times.end_of_step(start)
        data = self.ring.read(start, max_bytes if end is None else min(max_bytes, end - start))
        self._advance(start + len(data))
        return start, data

    def _advance(self, offset: int) -> None:
        self.sent = offset
        self.highest_sent = max(self.highest_sent, offset)

    def _commit(self, offset: int) -> None:
        self.committed = max(self.committed, offset)
        self.ring.release(offset)
        self.times.drop_before(self.ring.first_offset)


class OutputSender:
    """All streams of one session in the order of production, from any offset the server asks for.

    While attached, at most ``window_bytes`` are sent and not acknowledged. Bytes that are not
    acknowledged stay in the rings (``ring_bytes`` per stream). Attaching again sends them again,
    maybe cut into other frames, or says which bytes are gone.
    """

    def __init__(
        self, *, session_id: str, streams: Sequence[Stream], ring_bytes: int = RING_BYTES
    ) -> None:
        self.session_id = session_id
        self._states: dict[Stream, _SendState] = {
            stream: _SendState(ring_bytes) for stream in streams
        }
        self._rings = [state.ring for state in self._states.values()]
        # Runs that still have bytes to send, and runs wholly sent that may have to be sent again.
        self._unsent = ProductionOrder()
        self._sent = ProductionOrder()
        self._window_bytes = 0
        self.is_attached = False
        self._seq = 0

    @property
    def is_drained(self) -> bool:
        """True if attached, and every byte and gap was sent (not: acknowledged)."""
        return self.is_attached and all(
            state.sent == state.ring.next_offset for state in self._states.values()
        )

    @property
    def unsent_bytes(self) -> int:
        """The bytes held that are still to be sent; all of them while detached."""
        return sum(state.unsent_bytes for state in self._states.values())

    @property
    def unacknowledged_bytes(self) -> int:
        """The bytes sent since the attach and not acknowledged, which the window limits."""
        return sum(state.in_flight_bytes for state in self._states.values())

    @property
    def backlog_bytes(self) -> int:
        """The bytes held in the rings, sent or not."""
        # Asked many times in a turn, so without a generator and calls for each stream.
        held = 0
        for ring in self._rings:
            held += ring.next_offset - ring.first_offset
        return held

    def next_offset(self, stream: Stream) -> int:
        """Return the number of bytes that the stream has produced so far."""
        return self._state(stream).ring.next_offset

    def free_bytes(self, stream: Stream) -> int:
        """Return the number of bytes that the stream can still produce before any are dropped."""
        return self._state(stream).ring.free_bytes

    def produce(self, stream: Stream, data: bytes, at: HostTime | None = None) -> None:
        """Take ``data`` that the program wrote ``at`` this moment.

        If the ring is full the oldest bytes are dropped, and a GAP is sent in their place.
        """
        state = self._state(stream)
        ring = state.ring
        if not data:
            return
        if at is not None:
            is_drained = state.sent == ring.next_offset
            state.times.add(ring.next_offset, at, begins_frame=is_drained)
        lost = ring.append(data)
        self._unsent.add(stream, ring.next_offset)
        if lost is not None:
            self._forget_runs_before(
                {name: state.ring.first_offset for name, state in self._states.items()}
            )

    def attach(self, expected: Mapping[Stream, int], window_bytes: int) -> None:
        """Send from these offsets on, which acknowledges everything before them.

        The offset of a stream that is not named is 0. Raises LocalProtocolError, changing nothing,
        for an offset that this session never reached or a window without bytes.
        """
        for stream, offset in expected.items():
            end = self._states[stream].ring.next_offset if stream in self._states else 0
            if not 0 <= offset <= end:
                raise LocalProtocolError(f"cannot send {stream} from {offset}: it ends at {end}")
        if window_bytes <= 0:
            raise LocalProtocolError(f"cannot send in a window of {window_bytes} bytes")
        self._window_bytes = window_bytes
        self.is_attached = True
        self._rewind(expected)

    def detach(self) -> None:
        """Stop sending: bytes that are not acknowledged count as unsent again."""
        self.is_attached = False
        self._rewind({stream: state.acknowledged for stream, state in self._states.items()})

    def acknowledge(self, stream: Stream, offset: int) -> None:
        """Take an ACK of everything before ``offset``; an old or repeated one is ignored.

        Raises AckAhead for bytes never sent.
        """
        state = self._state(stream)
        if offset > state.highest_sent:
            raise AckAhead(stream, state.highest_sent, offset)
        if offset > state.acknowledged:
            state.acknowledge(offset)
            self._forget_runs_before(
                {name: each.acknowledged for name, each in self._states.items()}
            )

    def next_frame(self) -> InteractiveOutput | Gap | None:
        """Return the next frame to send; None if detached, drained, or the window is full."""
        room = self._window_bytes - self.unacknowledged_bytes
        # A gap waits for the window like the bytes behind it. So it covers everything that is
        # dropped until then.
        if not self.is_attached or room <= 0:
            return None
        while (run := self._unsent.first) is not None:
            state = self._states[run.stream]
            if state.sent >= run.end:
                self._unsent.pop_first()
                self._sent.add(run.stream, run.end)
                continue
            if (gap := self._next_gap(run.stream)) is not None:
                return gap
            offset, data = state.take_data(min(run.end - state.sent, room, MAX_CHUNK_BYTES))
            return InteractiveOutput(
                session_id=self.session_id,
                stream=run.stream,
                offset=offset,
                seq=self.verdict_seq(),
                data=data,
                at=state.times.at(offset),
            )
        # The server may ask again for bytes that were acknowledged and released. If no run is left,
        # the gap is all there is to send.
        gaps = (self._next_gap(stream) for stream in self._states)
        return next((gap for gap in gaps if gap is not None), None)

    def _next_gap(self, stream: Stream) -> Gap | None:
        gone = self._states[stream].take_gap()
        if gone is None:
            return None
        start, end, reason = gone
        return Gap(
            session_id=self.session_id,
            stream=stream,
            from_offset=start,
            to_offset=end,
            reason=reason,
        )

    def verdict_seq(self) -> int:
        """Take and return the number of the next output frame.

        The caller needs a number for a frame that carries a verdict and no bytes.
        """
        self._seq += 1
        return self._seq

    def positions(self) -> list[StreamPosition]:
        """Return the range of bytes that is held of each stream."""
        return [
            StreamPosition(
                stream=stream,
                first_offset=state.ring.first_offset,
                next_offset=state.ring.next_offset,
            )
            for stream, state in self._states.items()
        ]

    def finals(self) -> list[StreamFinal]:
        """Return length and digest of each stream as it is now."""
        return [
            StreamFinal(
                stream=stream, next_offset=state.ring.next_offset, sha256=state.ring.sha256_hex()
            )
            for stream, state in self._states.items()
        ]

    def _state(self, stream: Stream) -> _SendState:
        try:
            return self._states[stream]
        except KeyError:
            raise LocalProtocolError(f"this session has no stream {stream}") from None

    def _rewind(self, offsets: Mapping[Stream, int]) -> None:
        for stream, state in self._states.items():
            state.rewind(offsets.get(stream, 0))
        self._unsent.prepend(self._sent)

    def _forget_runs_before(self, floors: Mapping[Stream, int]) -> None:
        self._sent.drop_before(floors)
        self._unsent.drop_before(floors)
