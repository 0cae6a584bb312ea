"""The stored output and events of a session in pages, with the times that are stored with them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects.models import CommandSession, SessionEvent
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_rows

CHUNKS_PER_PAGE: Final = 64
"""At most 4 MiB at once."""
PLACES_PER_PAGE: Final = 5000
EVENTS_PER_PAGE: Final = 500

_CHUNKS: Final = (
    'SELECT stream, "offset", size, seq, host_time, host_clock, created_at, {data} '
    "FROM projects_outputchunk WHERE session_id = %s AND stream = %s "
    'AND "offset" >= %s ORDER BY "offset" LIMIT %s'
)
_BEFORE: Final = (
    'SELECT MAX("offset") AS first FROM projects_outputchunk '
    'WHERE session_id = %s AND stream = %s AND "offset" <= %s'
)
_WITH_DATA: Final = _CHUNKS.format(data="data")
_WITHOUT_DATA: Final = _CHUNKS.format(data="NULL")


class TimedChunk(NamedTuple):
    """A stored piece of output. ``host_time`` and ``host_clock`` are None if the host was too old.

    ``stored_at`` is the server's time. ``data`` is None if only its place was asked for.
    """

    stream: Stream
    offset: int
    size: int
    seq: int
    host_time: datetime | None
    host_clock: float | None
    stored_at: datetime
    data: bytes | memoryview | None

    @property
    def end(self) -> int:
        """The offset of the first byte behind the chunk."""
        return self.offset + self.size


class _First(NamedTuple):
    first: int | None


def chunks(
    session_id: UUID, stream: Stream, start: int = 0, *, with_data: bool = True
) -> Iterator[TimedChunk]:
    """Yield the chunks of a stream, from the one that holds ``start`` on.

    They are read in pages, each by a statement of its own: nothing is held between two pages.
    """
    key = as_parameter(session_id)
    (found,) = fetch_rows(_First, _BEFORE, [key, stream, start])
    position = start if found.first is None else found.first
    statement = _WITH_DATA if with_data else _WITHOUT_DATA
    at_once = CHUNKS_PER_PAGE if with_data else PLACES_PER_PAGE
    while page := fetch_rows(TimedChunk, statement, [key, stream, position, at_once]):
        yield from page
        position = page[-1].end


def chunk_from(session_id: UUID, stream: Stream, start: int) -> TimedChunk | None:
    """Return the first chunk that begins at ``start`` or later, without its data."""
    parameters = [as_parameter(session_id), stream, start, 1]
    return next(iter(fetch_rows(TimedChunk, _WITHOUT_DATA, parameters)), None)


def ends(session: CommandSession) -> dict[Stream, int]:
    """Return the number of bytes of each stream, as far as the row of the session reaches."""
    return {"stdout": session.stdout_next_offset, "stderr": session.stderr_next_offset}


def newest_event(session_id: UUID) -> int:
    """Return the number of the newest event of a session; 0 if it has none."""
    rows = SessionEvent.objects.filter(session_id=session_id).order_by("-seq")
    return rows.values_list("seq", flat=True).first() or 0


def events(
    session_id: UUID, after_seq: int = 0, upto_seq: int | None = None
) -> Iterator[SessionEvent]:
    """Yield the events of a session in their order, from the one after ``after_seq`` on."""
    rows = SessionEvent.objects.filter(session_id=session_id).order_by("seq")
    if upto_seq is not None:
        rows = rows.filter(seq__lte=upto_seq)
    while page := list(rows.filter(seq__gt=after_seq)[:EVENTS_PER_PAGE]):
        yield from page
        after_seq = page[-1].seq
