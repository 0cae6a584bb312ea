"""A recording for a player that seeks: an index of all of it, and parts from any place on.

A part is found by its offsets, so a moment in the middle costs as much as one at the beginning. A
player that begins in the middle starts SCREEN_BYTES earlier, as every view of a screen does.
"""

import base64
import heapq
from collections.abc import Iterator
from itertools import chain, islice, takewhile
from typing import Final, NamedTuple

from projects.models import CommandSession
from projects.output.recording import rows
from projects.output.recording.cast import first_size, masked
from projects.output.recording.labels import label_of
from projects.output.recording.rows import TimedChunk
from projects.output.recording.timeline import STREAMS, Happened, Lost, Output, clock_of, moments
from projects.output.result import Result
from projects.output.screen_view import SCREEN_BYTES
from projects.secrets.masks import SecretMask, secret_mask

MAX_MARKERS: Final = 5000
PART_BYTES: Final = 128 * 1024
PART_CHUNKS: Final = 1000
_PLACES: Final = 2000
_PLACE_BYTES: Final = 16 * 1024
_PLACE_SECONDS: Final = 5.0


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


class ReplayPart(Result):
    """Some output: times, and base64 of what a screen is fed.

    The next part begins at ``stdout`` and ``stderr``. Both are None at the end.
    """

    times: list[float]
    data: list[str]
    stdout: int | None
    stderr: int | None


def replay_index(session: CommandSession) -> ReplayIndex:
    """Return the index of what is stored of ``session``."""
    clock = clock_of(session.pk)
    mask = secret_mask(session.pk)
    places: list[SeekPlace] = []
    markers: list[Marker] = []
    at = {"stdout": 0, "stderr": 0}
    step = max(_PLACE_BYTES, (session.stdout_next_offset + session.stderr_next_offset) // _PLACES)
    time = 0.0
    for moment in moments(session, clock, with_data=False):
        time = moment.time
        if isinstance(moment, Output):
            at[moment.stream] = moment.offset
            if _is_far(places, time, at, step):
                places.append(SeekPlace(time=time, stdout=at["stdout"], stderr=at["stderr"]))
            at[moment.stream] = moment.offset + moment.size
        elif len(markers) < MAX_MARKERS and (marker := _marker(moment, mask)) is not None:
            markers.append(marker)
    rows_, cols = first_size(session)
    return ReplayIndex(
        began_at=(clock.began_at or session.created_at).timestamp(),
        seconds=time,
        is_host_time=clock.is_host_time,
        rows=rows_,
        cols=cols,
        lead_bytes=SCREEN_BYTES,
        places=places,
        markers=markers,
    )


def _is_far(places: list[SeekPlace], time: float, at: dict[str, int], step: int) -> bool:
    if not places:
        return True
    last = places[-1]
    return (
        time - last.time >= _PLACE_SECONDS
        or at["stdout"] + at["stderr"] - last.stdout - last.stderr >= step
    )


def _marker(moment: Happened | Lost, mask: SecretMask) -> Marker | None:
    if isinstance(moment, Lost):
        label = f"gap: {moment.size} bytes are gone ({moment.reason})"
        return Marker(time=moment.time, kind="gap", label=label)
    event = moment.event
    if event.kind == "resize":
        size = {"rows": event.detail.get("rows"), "cols": event.detail.get("cols")}
        label = f"{size['cols']} columns, {size['rows']} rows"
        return Marker(time=moment.time, kind=event.kind, label=label, **size)
    label_or_none = label_of(event)
    if label_or_none is None:
        return None
    return Marker(time=moment.time, kind=event.kind, label=mask.masked(label_or_none))


class _Piece(NamedTuple):
    """Output of a part; ``is_shown`` is False for what only helps to find secrets."""

    time: float
    data: bytes
    is_shown: bool


def replay_part(session: CommandSession, stdout: int, stderr: int) -> ReplayPart:
    """Return at most about PART_BYTES of output, from the pieces that hold these offsets on."""
    clock = clock_of(session.pk)
    mask = secret_mask(session.pk)
    starts = {"stdout": stdout, "stderr": stderr}
    found = _from(session, starts)
    taken: list[TimedChunk] = []
    size = 0
    for chunk in found:
        taken.append(chunk)
        size += chunk.size
        starts[chunk.stream] = chunk.end
        if size >= PART_BYTES or len(taken) >= PART_CHUNKS:
            break
    following = next(found, None)
    pieces = [_Piece(clock.of(chunk), bytes(chunk.data or b""), True) for chunk in taken]
    if mask.found is not None and taken:
        around = len(mask.found.pattern) * 4
        before = _bytes_before(session, taken[0], around)
        behind = b"".join(
            bytes(chunk.data or b"")
            for chunk in islice(chain([following] if following else [], found), 4)
        )[:around]
        pieces = _masked([_Piece(0, before, False), *pieces, _Piece(0, behind, False)], mask)
    is_end = following is None
    return ReplayPart(
        times=[piece.time for piece in pieces],
        data=[base64.b64encode(piece.data).decode("ascii") for piece in pieces],
        stdout=None if is_end else starts["stdout"],
        stderr=None if is_end else starts["stderr"],
    )


def _from(session: CommandSession, starts: dict[str, int]) -> Iterator[TimedChunk]:
    ends = {"stdout": session.stdout_next_offset, "stderr": session.stderr_next_offset}
    streams = [
        rows.chunks(session.pk, stream, starts[stream])
        for stream in STREAMS
        if starts[stream] < ends[stream]
    ]
    return heapq.merge(*streams, key=lambda chunk: chunk.seq)


def _bytes_before(session: CommandSession, first: TimedChunk, size: int) -> bytes:
    start = max(0, first.offset - size)
    earlier = rows.chunks(session.pk, first.stream, start) if first.offset else iter(())
    before = takewhile(lambda chunk: chunk.offset < first.offset, earlier)
    found = [bytes(chunk.data or b"") for chunk in before]
    return b"".join(found)[-size:]


def _masked(pieces: list[_Piece], mask: SecretMask) -> list[_Piece]:
    """Return the pieces that are shown, without secrets. Their text is as a screen would read it.

    The place of a piece in the list stands where a cast has the time.
    """
    text = [(float(place), "o", _text(piece.data)) for place, piece in enumerate(pieces)]
    shown = [(pieces[int(place)], data) for place, _, data in masked(text, mask)]
    return [
        piece._replace(data=data.encode("utf-8", "surrogateescape"))
        for piece, data in shown
        if piece.is_shown
    ]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
