"""Holder side of output: what was produced, what was sent, what the server has, for all streams of one session."""

from collections import deque
from collections.abc import Mapping, Sequence

from controller_client.protocol.errors import AckAhead, LocalProtocolError
from controller_client.protocol.limits import MAX_CHUNK_BYTES, RING_BYTES
from controller_client.protocol.messages import Gap, GapReason, InteractiveOutput, Stream, StreamFinal, StreamPosition
from controller_client.protocol.output_ring import OutputRing
from controller_client.protocol.resume.production_order import ProductionOrder


class _SendState:
    """One stream: the server has everything before ``acknowledged``; ``sent`` is the next offset to send."""

    def __init__(self, capacity_bytes: int) -> None:
        self.ring = OutputRing(capacity_bytes)
        self.sent = 0
        self.acknowledged = 0
        # The highest offset the server ever had. Asked for less later, it lost what it had: that is not an overflow.
        self.committed = 0
        # The highest offset ever sent: an ACK above it is a lie.
        self.highest_sent = 0
        self._gaps_in_flight: deque[tuple[int, int]] = deque()

    @property
    def in_flight_bytes(self) -> int:
        """Bytes sent and not acknowledged. A gap moves the offset without being in flight."""
        gaps = sum(end - max(start, self.acknowledged) for start, end in self._gaps_in_flight)
        return self.sent - self.acknowledged - gaps

    @property
    def unsent_bytes(self) -> int:
        """Bytes held that were not sent since the last rewind."""
        return self.ring.next_offset - max(self.sent, self.ring.first_offset)

    def rewind(self, offset: int) -> None:
        """The next byte to send is at ``offset``; nothing is in flight."""
        self._gaps_in_flight.clear()
        self.sent = self.acknowledged = offset
        self.highest_sent = max(self.highest_sent, offset)
        self._commit(offset)

    def acknowledge(self, offset: int) -> None:
        """The server has everything before ``offset``, which is above ``acknowledged``."""
        self.acknowledged = offset
        self.sent = max(self.sent, offset)
        while self._gaps_in_flight and self._gaps_in_flight[0][1] <= offset:
            self._gaps_in_flight.popleft()
        self._commit(offset)

    def take_gap(self) -> tuple[int, int, GapReason] | None:
        """The bytes at the send position that are gone, if they are; the position moves behind them."""
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
        """Offset and bytes at the send position, which moves behind them."""
        start = self.sent
        data = self.ring.read(start, max_bytes)
        self._advance(start + len(data))
        return start, data

    def _advance(self, offset: int) -> None:
        self.sent = offset
        self.highest_sent = max(self.highest_sent, offset)

    def _commit(self, offset: int) -> None:
        self.committed = max(self.committed, offset)
        self.ring.release(offset)


class OutputSender:
    """All streams of one session in one mutual order; sends from any offset the server asks for.

    While attached, at most ``window_bytes`` are sent and unacknowledged. What is not acknowledged stays in the rings
    (``ring_bytes`` per stream), so attaching again sends it again, cut as it may be, or says which bytes are gone.
    """

    def __init__(self, *, session_id: str, streams: Sequence[Stream], ring_bytes: int = RING_BYTES) -> None:
        self.session_id = session_id
        self._states: dict[Stream, _SendState] = {stream: _SendState(ring_bytes) for stream in streams}
        # Runs that still have bytes to send, and runs wholly sent that may have to be sent again.
        self._unsent = ProductionOrder()
        self._sent = ProductionOrder()
        self._window_bytes = 0
        self._is_attached = False
        self._seq = 0

    @property
    def is_attached(self) -> bool:
        """Whether there is somebody to send to."""
        return self._is_attached

    @property
    def is_drained(self) -> bool:
        """Attached, and every byte and gap was sent (not: acknowledged)."""
        return self._is_attached and all(state.sent == state.ring.next_offset for state in self._states.values())

    @property
    def unsent_bytes(self) -> int:
        """Bytes held that are still to be sent; all of them while detached."""
        return sum(state.unsent_bytes for state in self._states.values())

    @property
    def unacknowledged_bytes(self) -> int:
        """Bytes sent since the attach and not acknowledged: what the window limits."""
        return sum(state.in_flight_bytes for state in self._states.values())

    @property
    def backlog_bytes(self) -> int:
        """Bytes held in the rings, sent or not."""
        return sum(state.ring.size_bytes for state in self._states.values())

    def free_bytes(self, stream: Stream) -> int:
        """How much the stream can still produce without dropping anything."""
        return self._state(stream).ring.free_bytes

    def produce(self, stream: Stream, data: bytes) -> None:
        """The program wrote ``data``. Past the ring the oldest bytes are dropped; a GAP will say so in their place."""
        ring = self._state(stream).ring
        if not data:
            return
        lost = ring.append(data)
        self._unsent.add(stream, ring.next_offset)
        if lost is not None:
            self._forget_runs_before({name: state.ring.first_offset for name, state in self._states.items()})

    def attach(self, expected: Mapping[Stream, int], window_bytes: int) -> None:
        """Send from these offsets on (0 for a stream not named); everything before them is acknowledged by this.

        Raises LocalProtocolError, changing nothing, for an offset this session never reached or a window that is no window.
        """
        for stream, offset in expected.items():
            end = self._states[stream].ring.next_offset if stream in self._states else 0
            if not 0 <= offset <= end:
                raise LocalProtocolError(f"cannot send {stream} from {offset}: it ends at {end}")
        if window_bytes <= 0:
            raise LocalProtocolError(f"cannot send in a window of {window_bytes} bytes")
        self._window_bytes = window_bytes
        self._is_attached = True
        self._rewind(expected)

    def detach(self) -> None:
        """Nobody to send to: what is not acknowledged counts as unsent again."""
        self._is_attached = False
        self._rewind({stream: state.acknowledged for stream, state in self._states.items()})

    def acknowledge(self, stream: Stream, offset: int) -> None:
        """The server has everything before ``offset``; an old or repeated one is ignored. Raises AckAhead for bytes never sent."""
        state = self._state(stream)
        if offset > state.highest_sent:
            raise AckAhead(stream, state.highest_sent, offset)
        if offset > state.acknowledged:
            state.acknowledge(offset)
            self._forget_runs_before({name: each.acknowledged for name, each in self._states.items()})

    def next_frame(self) -> InteractiveOutput | Gap | None:
        """The next frame in the order of production; None if detached, drained, or the window is full."""
        room = self._window_bytes - self.unacknowledged_bytes
        # A gap waits for the window like the bytes behind it: it then covers all that was dropped meanwhile.
        if not self._is_attached or room <= 0:
            return None
        while (run := self._unsent.first) is not None:
            state = self._states[run.stream]
            if state.sent >= run.end:
                self._unsent.pop_first()
                self._sent.add(run.stream, run.end)
                continue
            gap = state.take_gap()
            if gap is not None:
                return Gap(session_id=self.session_id, stream=run.stream, from_offset=gap[0], to_offset=gap[1], reason=gap[2])
            offset, data = state.take_data(min(run.end - state.sent, room, MAX_CHUNK_BYTES))
            return InteractiveOutput(session_id=self.session_id, stream=run.stream, offset=offset, seq=self.verdict_seq(), data=data)
        # Asked again for bytes that were acknowledged and released, when no run is left: the gap is all there is to send.
        for stream, state in self._states.items():
            gap = state.take_gap()
            if gap is not None:
                return Gap(session_id=self.session_id, stream=stream, from_offset=gap[0], to_offset=gap[1], reason=gap[2])
        return None

    def verdict_seq(self) -> int:
        """The number of the next output frame, for a frame that carries a verdict and no bytes. Each call takes one."""
        self._seq += 1
        return self._seq

    def positions(self) -> list[StreamPosition]:
        """What is held of each stream."""
        return [
            StreamPosition(stream=stream, first_offset=state.ring.first_offset, next_offset=state.ring.next_offset)
            for stream, state in self._states.items()
        ]

    def finals(self) -> list[StreamFinal]:
        """Length and digest of each stream as it is now."""
        return [
            StreamFinal(stream=stream, next_offset=state.ring.next_offset, sha256=state.ring.sha256_hex())
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
