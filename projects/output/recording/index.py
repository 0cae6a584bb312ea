"""The index of a recording: its moments to jump to, and where its output is by time.

Few pieces of output are looked at, however many there are: a place every few kilobytes.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from controller_client.protocol.messages import Stream
from projects.models import CommandSession, OutputGap, SessionEvent
from projects.output.recording import rows
from projects.output.recording.cast import first_size
from projects.output.recording.labels import label_of
from projects.output.recording.rows import TimedChunk
from projects.output.recording.timeline import STREAMS, RecordingClock, clock_of
from projects.output.result import Result
from projects.output.screen_view import SCREEN_BYTES
from projects.secrets.masks import SecretMask, secret_mask

MAX_MARKERS: Final = 5000
_PLACES: Final = 500
_PLACE_BYTES: Final = 16 * 1024


class Marker(Result):
    """A moment to jump to. ``rows`` and ``cols`` are set if the terminal was resized."""

    time: float
    kind: str
    label: str
    rows: int | None = None
    cols: int | None = None


class SeekPlace(Result):
    """The time of the output that begins at these offsets."""

    time: float
    stdout: int
    stderr: int


class ReplayIndex(Result):
    """The whole of a recording, without its output.

    ``began_at`` is in seconds since 1970. ``lead_bytes`` is how much output makes up a screen.
    """

    began_at: float
    seconds: float
    is_host_time: bool
    rows: int
    cols: int
    lead_bytes: int
    places: list[SeekPlace]
    markers: list[Marker]


def replay_index(session: CommandSession) -> ReplayIndex:
    """Return the index of what is stored of ``session``."""
    clock = clock_of(session.pk)
    places = _places(session, clock)
    # The last moment is that of the last piece of output, or of an event after it.
    last = max([clock.of(chunk) for chunk in _last_chunks(session)], default=0.0)
    markers, seconds = _markers(session, clock, last)
    rows_, cols = first_size(session)
    return ReplayIndex(
        began_at=(clock.began_at or session.created_at).timestamp(),
        seconds=seconds,
        is_host_time=clock.is_host_time,
        rows=rows_,
        cols=cols,
        lead_bytes=SCREEN_BYTES,
        places=places,
        markers=markers,
    )


def _places(session: CommandSession, clock: RecordingClock) -> list[SeekPlace]:
    step = max(_PLACE_BYTES, sum(rows.ends(session).values()) // _PLACES)
    found = [chunk for stream in STREAMS for chunk in _every(session, stream, step)]
    places: list[SeekPlace] = []
    at: dict[Stream, int] = {"stdout": 0, "stderr": 0}
    time = 0.0
    for chunk in sorted(found, key=lambda chunk: chunk.seq):
        time = max(time, clock.of(chunk))
        at[chunk.stream] = chunk.offset
        places.append(SeekPlace(time=time, **at))
    return places


def _every(session: CommandSession, stream: Stream, step: int) -> Iterator[TimedChunk]:
    """Yield a piece of the stream every ``step`` bytes, without its data."""
    end = rows.ends(session)[stream]
    position = 0
    while position < end and (chunk := rows.chunk_from(session.pk, stream, position)) is not None:
        if chunk.offset < end:
            yield chunk
        position = max(chunk.end, chunk.offset + step)


def _last_chunks(session: CommandSession) -> list[TimedChunk]:
    found = [
        next(rows.chunks(session.pk, stream, end - 1, with_data=False), None)
        for stream, end in rows.ends(session).items()
        if end
    ]
    return [chunk for chunk in found if chunk is not None]


def _markers(
    session: CommandSession, clock: RecordingClock, last: float
) -> tuple[list[Marker], float]:
    """Return the markers in their order, and the time of the last moment."""
    mask = secret_mask(session.pk)
    markers = list(_gaps(session, clock, last))
    time = 0.0
    for event in rows.events(session.pk):
        time = max(time, _time_of(event, clock))
        if len(markers) < MAX_MARKERS and (marker := _marker(time, event, mask)) is not None:
            markers.append(marker)
    return sorted(markers, key=lambda marker: marker.time), max(time, last)


def _time_of(event: SessionEvent, clock: RecordingClock) -> float:
    """Return the time of an event, for one that the server timed not after the next output."""
    time = clock.of(event)
    if event.host_clock is not None or not clock.is_host_time:
        return time
    following = rows.chunk_from(event.session_id, "stdout", event.offset)
    return time if following is None else min(time, clock.of(following))


def _gaps(session: CommandSession, clock: RecordingClock, last: float) -> Iterator[Marker]:
    for stream in STREAMS:
        gaps = OutputGap.objects.filter(session_id=session.pk, stream=stream)
        for gap in islice(gaps.order_by("from_offset"), MAX_MARKERS):
            after = rows.chunk_from(session.pk, stream, gap.to_offset)
            time = last if after is None else clock.of(after)
            size = gap.to_offset - gap.from_offset
            label = f"gap: {size} bytes are gone ({gap.reason})"
            yield Marker(time=time, kind="gap", label=label)


def _marker(time: float, event: SessionEvent, mask: SecretMask) -> Marker | None:
    label = label_of(event)
    # The gaps that are there now are listed, which may be more or larger ones.
    if label is None or event.kind == "gap":
        return None
    size = {name: event.detail.get(name) for name in ("rows", "cols")}
    return Marker(
        time=time,
        kind=event.kind,
        label=mask.masked(label),
        **(size if event.kind == "resize" else {}),
    )
