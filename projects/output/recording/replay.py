"""A recording for a player that seeks: parts of its output, from any place on.

A part is found by its offsets, so a moment in the middle costs as much as one at the beginning.
"""

import base64
import heapq
from collections.abc import Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import Final, NamedTuple

from projects.models import CommandSession, SessionEvent
from projects.output.recording import rows
from projects.output.recording.cast import masked
from projects.output.recording.rows import TimedChunk
from projects.output.recording.timeline import STREAMS, RecordingClock, clock_of
from projects.output.result import Result
from projects.secrets.masks import SecretMask, secret_mask

PART_BYTES: Final = 128 * 1024
PART_CHUNKS: Final = 1000


class ReplayPart(Result):
    """Some output: what a screen is fed, one piece after the other.

    A piece is a time and base64 of output, or a time and the rows and columns of the terminal from
    then on. The next part begins at ``stdout`` and ``stderr``. Both are None at the end.
    """

    pieces: list[tuple[float, str] | tuple[float, int, int]]
    stdout: int | None
    stderr: int | None


class _Piece(NamedTuple):
    """Output of a part, or a size of the terminal.

    ``is_shown`` is False for what only helps to find secrets.
    """

    time: float
    data: bytes
    is_shown: bool = True
    size: tuple[int, int] | None = None

    @property
    def as_sent(self) -> tuple[float, str] | tuple[float, int, int]:
        if self.size is not None:
            return (self.time, *self.size)
        return self.time, base64.b64encode(self.data).decode("ascii")


def replay_part(
    session: CommandSession, stdout: int, stderr: int, *, is_least: bool = False
) -> ReplayPart:
    """Return at most about PART_BYTES of output, from the pieces that hold these offsets on.

    ``is_least``: one piece alone.
    """
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
        if size >= PART_BYTES or is_least or len(taken) >= PART_CHUNKS:
            break
    following = next(found, None)
    is_end = following is None
    resizes = _resizes(session, stdout, None if is_end else starts["stdout"])
    pieces = list(_pieces(taken, resizes, clock))
    if mask.found is not None and taken:
        around = len(mask.found.pattern) * 4
        before = _bytes_before(session, taken[0], around)
        behind = b"".join(
            bytes(chunk.data or b"")
            for chunk in islice(chain([following] if following else [], found), 4)
        )[:around]
        pieces = _masked(
            [_Piece(0, before, is_shown=False), *pieces, _Piece(0, behind, is_shown=False)], mask
        )
    return ReplayPart(
        pieces=[piece.as_sent for piece in pieces],
        stdout=None if is_end else starts["stdout"],
        stderr=None if is_end else starts["stderr"],
    )


def _resizes(session: CommandSession, start: int, end: int | None) -> list[SessionEvent]:
    """The resizes that come before output from ``start`` up to ``end``, or after all of it."""
    found = SessionEvent.objects.filter(
        session_id=session.pk, kind="resize", offset__gte=start
    ).order_by("seq")
    return list(found if end is None else found.filter(offset__lt=end))


def _pieces(
    taken: Sequence[TimedChunk], resizes: Sequence[SessionEvent], clock: RecordingClock
) -> Iterator[_Piece]:
    """Yield the output with each resize before the first byte that was written after it."""
    time, left = 0.0, list(resizes)
    for chunk in taken:
        time, start = max(time, clock.of(chunk)), chunk.offset
        data = bytes(chunk.data or b"")
        while chunk.stream == "stdout" and left and left[0].offset < chunk.end:
            if (cut := left[0].offset) > start:
                yield _Piece(time, data[start - chunk.offset : cut - chunk.offset])
                start = cut
            yield _resized(left.pop(0), time)
        yield _Piece(time, data[start - chunk.offset :])
    for event in left:
        time = max(time, clock.of(event))
        yield _resized(event, time)


def _resized(event: SessionEvent, time: float) -> _Piece:
    return _Piece(time, b"", size=(int(event.detail["rows"]), int(event.detail["cols"])))


def _from(session: CommandSession, starts: dict[str, int]) -> Iterator[TimedChunk]:
    streams = [
        rows.chunks(session.pk, stream, starts[stream])
        for stream in STREAMS
        if starts[stream] < rows.ends(session)[stream]
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
    text = [
        (float(place), "o" if piece.size is None else "r", _text(piece.data))
        for place, piece in enumerate(pieces)
    ]
    shown = [(pieces[int(place)], data) for place, _, data in masked(text, mask)]
    return [
        piece._replace(data=data.encode("utf-8", "surrogateescape"))
        for piece, data in shown
        if piece.is_shown
    ]


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
