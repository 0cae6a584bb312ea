"""Everything that happened in a session, in its order, with seconds since its beginning.

The order is that of the output: an event comes before the first byte that was written after it. The
time is the host's, by the clock that setting the date does not move. What has the server's time
alone (a take-over, and everything that an older daemon sent) is moved by the shortest delay between
host and server that was seen, and never past the output that followed.
"""

import heapq
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects.models import CommandSession, OutputGap, SessionEvent
from projects.output.recording import rows
from projects.output.recording.rows import TimedChunk

STREAMS: Final[tuple[Stream, ...]] = ("stdout", "stderr")


class Output(NamedTuple):
    """Bytes that the program wrote."""

    time: float
    stream: Stream
    offset: int
    size: int
    data: bytes


class Lost(NamedTuple):
    """A range of bytes that is gone, and why."""

    time: float
    stream: Stream
    offset: int
    size: int
    reason: str


class Happened(NamedTuple):
    """An event, and the bytes of ``stdout`` that came before."""

    time: float
    event: SessionEvent


Moment = Output | Lost | Happened


class RecordingClock:
    """Turns the times that are stored into seconds since the beginning of the recording.

    ``began_at`` is the beginning as a date, by the clock of the host if ``is_host_time``.
    """

    def __init__(self, firsts: Sequence[TimedChunk | SessionEvent]) -> None:
        clocks = [first for first in firsts if first.host_clock is not None]
        stored = [_stored_at(first) for first in firsts]
        self._stored = min(stored, default=None)
        self._clock: float | None = None
        self.began_at = self._stored
        if clocks:
            first = min(clocks, key=lambda each: each.host_clock or 0.0)
            self._clock, self.began_at = first.host_clock, first.host_time
        self.is_host_time = self._clock is not None
        self._shift: float | None = None

    def of(self, item: TimedChunk | SessionEvent) -> float:
        """Return the seconds from the beginning of the recording to ``item``."""
        stored = self._since_first_stored(_stored_at(item))
        if item.host_clock is not None and self._clock is not None:
            seconds = item.host_clock - self._clock
            shift = seconds - stored
            self._shift = shift if self._shift is None else max(self._shift, shift)
        else:
            seconds = stored + (self._shift or 0.0)
        return max(0.0, seconds)

    def _since_first_stored(self, at: datetime) -> float:
        return 0.0 if self._stored is None else (at - self._stored).total_seconds()


def _stored_at(item: TimedChunk | SessionEvent) -> datetime:
    return item.created_at if isinstance(item, SessionEvent) else item.stored_at


def clock_of(session_id: UUID) -> RecordingClock:
    """Return the clock of a session's recording. It begins with what is left of the session."""
    chunks = [rows.chunk_from(session_id, stream, 0) for stream in STREAMS]
    first = SessionEvent.objects.filter(session_id=session_id).order_by("seq").first()
    return RecordingClock([found for found in (*chunks, first) if found is not None])


def beginning_of(session_id: UUID) -> str:
    """Return the date from which the seconds of a recording count; empty if it has nothing."""
    began_at = clock_of(session_id).began_at
    return began_at.isoformat() if began_at else ""


def moments(
    session: CommandSession,
    clock: RecordingClock,
    *,
    with_data: bool = True,
    upto_event: int | None = None,
) -> Iterator[Moment]:
    """Yield everything that is stored of ``session``, as far as its row reaches.

    ``upto_event`` is the last event to yield; None: every event.
    """
    return _Merge(session, clock, with_data=with_data, upto_event=upto_event).all()


class _Merge:
    """The merge of the streams and the events of one session."""

    def __init__(
        self,
        session: CommandSession,
        clock: RecordingClock,
        *,
        with_data: bool,
        upto_event: int | None,
    ) -> None:
        self._session = session
        self._clock = clock
        self._ends: dict[Stream, int] = {
            "stdout": session.stdout_next_offset,
            "stderr": session.stderr_next_offset,
        }
        self._with_data = with_data
        self._positions: dict[Stream, int] = {"stdout": 0, "stderr": 0}
        self._events = rows.events(session.pk, upto_seq=upto_event)
        self._event = next(self._events, None)
        self._time = 0.0

    def all(self) -> Iterator[Moment]:
        streams = [
            rows.chunks(self._session.pk, stream, with_data=self._with_data)
            for stream in STREAMS
            if self._ends[stream]
        ]
        for chunk in heapq.merge(*streams, key=lambda chunk: chunk.seq):
            if chunk.offset < self._ends[chunk.stream]:
                yield from self._chunk(chunk)
        for stream, end in self._ends.items():
            yield from self._lost(stream, end)
        yield from self._due(None, None)

    def _chunk(self, chunk: TimedChunk) -> Iterator[Moment]:
        at = self._clock.of(chunk)
        if chunk.stream == "stdout":
            yield from self._due(chunk.offset, at)
        yield from self._lost(chunk.stream, chunk.offset)
        start = chunk.offset
        while chunk.stream == "stdout" and self._event and start < self._event.offset < chunk.end:
            yield self._output(chunk, start, self._event.offset, at)
            start = self._event.offset
            yield from self._due(start, None)
        yield self._output(chunk, start, chunk.end, at)
        self._positions[chunk.stream] = chunk.end

    def _output(self, chunk: TimedChunk, start: int, end: int, at: float) -> Output:
        data = b"" if chunk.data is None else bytes(chunk.data)
        part = data[start - chunk.offset : end - chunk.offset]
        return Output(self._at(at), chunk.stream, start, end - start, part)

    def _lost(self, stream: Stream, end: int) -> Iterator[Lost]:
        start = self._positions[stream]
        if start >= end:
            return
        gaps = OutputGap.objects.filter(
            session_id=self._session.pk, stream=stream, from_offset__lte=start
        )
        reason = gaps.order_by("-from_offset").values_list("reason", flat=True).first()
        self._positions[stream] = end
        yield Lost(self._time, stream, start, end - start, reason or "lost")

    def _due(self, offset: int | None, until: float | None) -> Iterator[Happened]:
        """Yield the events up to ``offset``, none of them later than ``until``."""
        while (event := self._event) is not None and (offset is None or event.offset <= offset):
            at = self._clock.of(event)
            yield Happened(self._at(at if until is None else min(at, until)), event)
            self._event = next(self._events, None)

    def _at(self, time: float) -> float:
        """Return ``time``, or the time of the moment before if that is later."""
        self._time = max(self._time, time)
        return self._time
