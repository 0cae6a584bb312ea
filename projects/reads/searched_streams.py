"""The streams that a search reads, and their order: the newest session or monitor first."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field

from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession, Monitor
from projects.monitors import log as monitor_log
from projects.output import log as output_log
from projects.output.result import Result

MAX_OWNERS: Final = 1000
"""The number of sessions and monitors one search looks at. The rest is for the next search."""

StreamName = Literal["stdout", "stderr", "log"]
"""``log`` is what a monitor read."""
Older = Literal["all", "same_stream"]
"""The older streams of the project that follow: all of them, or those of the same name."""


class SearchPosition(Result):
    """The place where the search continues."""

    session_id: UUID
    stream: StreamName
    offset: int
    older: Older | None = Field(
        description="Set after a search of the project: what is older follows."
    )


@dataclass(frozen=True, kw_only=True)
class SearchScope:
    """The part of a project that a caller wants searched. There are three kinds:

    * without ``session_id``: the whole project;
    * with ``session_id``: one session or monitor, from ``offset`` on;
    * with ``session_id`` and ``older``: from ``offset`` of that session or monitor on, and then
      what is older in the project. A search of the whole project is continued like this.

    ``stream`` limits the first two kinds to streams of this name, and says where the third begins.
    """

    project_id: UUID
    session_id: UUID | None
    stream: StreamName | None
    offset: int
    older: Older | None

    @property
    def only_stream(self) -> StreamName | None:
        """The name that all searched streams must have; None for no such limit."""
        if self.session_id is None or self.older == "same_stream":
            return self.stream
        return None

    def names(self, stream: "SearchedStream") -> bool:
        """True if the scope begins with this stream."""
        return stream.session_id == self.session_id and self.stream in {None, stream.name}

    def continued_at(self, stream: "SearchedStream", offset: int) -> SearchPosition:
        """The position at which another search continues this one."""
        older = self.older
        if self.session_id is None:
            older = "all" if self.stream is None else "same_stream"
        return SearchPosition(
            session_id=stream.session_id, stream=stream.name, offset=offset, older=older
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchedStream:
    """The bytes ``[start, end)`` of one stream. ``monitor_id`` is set for the log of a monitor."""

    session_id: UUID
    name: StreamName
    start: int
    end: int
    monitor_id: int | None = None

    def pieces(self) -> Iterator[bytes | int]:
        """Yields the stored bytes in order; after a gap, the offset at which the bytes continue."""
        if self.monitor_id is not None:
            yield from monitor_log.pieces(self.monitor_id, self.start, self.end)
            return
        name: Literal["stdout", "stderr"] = "stderr" if self.name == "stderr" else "stdout"
        for piece in output_log.pieces(self.session_id, name, self.start, self.end):
            yield piece if isinstance(piece, bytes) else piece.to_offset


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The streams to search, in order. ``last``: the oldest one, if MAX_OWNERS left others out."""

    streams: list[SearchedStream]
    last: SearchedStream | None


class _Owner(NamedTuple):
    """A session or a monitor with its streams. Owners are sorted by the first two fields."""

    age: float
    tie_breaker: str
    streams: list[SearchedStream]


def select_streams(scope: SearchScope) -> Selection:
    """Finds the streams of ``scope`` that have stored bytes.

    Raises:
        SessionNotFound: if the project has neither a session nor a monitor of the scope's id.

    """
    sessions = CommandSession.objects.filter(project_id=scope.project_id)
    monitors = Monitor.objects.filter(project_id=scope.project_id)
    if scope.session_id is not None:
        sessions, monitors = _narrow(
            scope.session_id, sessions, monitors, is_older_wanted=scope.older is not None
        )
    if scope.only_stream == "log":
        sessions = sessions.none()
    elif scope.only_stream is not None:
        monitors = monitors.none()
    owners = sorted(
        [*_session_owners(sessions), *_monitor_owners(monitors)], key=lambda owner: owner[:2]
    )
    streams = [
        stream
        for owner in owners[:MAX_OWNERS]
        for stream in owner.streams
        if scope.only_stream in {None, stream.name}
    ]
    return Selection(
        streams=_from_start(streams, scope), last=streams[-1] if len(owners) > MAX_OWNERS else None
    )


def _narrow(
    session_id: UUID,
    sessions: QuerySet[CommandSession],
    monitors: QuerySet[Monitor],
    *,
    is_older_wanted: bool,
) -> tuple[QuerySet[CommandSession], QuerySet[Monitor]]:
    """Limits both to the session or monitor of this id, or to all that is not newer."""
    named_sessions, named_monitors = (
        sessions.filter(id=session_id),
        monitors.filter(session_id=session_id),
    )
    started = [
        *named_sessions.values_list("created_at", flat=True),
        *named_monitors.values_list("started_at", flat=True),
    ]
    if not started:
        raise SessionNotFound(session_id)
    if not is_older_wanted:
        return named_sessions, named_monitors
    newest = max(started)
    return sessions.filter(created_at__lte=newest), monitors.filter(started_at__lte=newest)


def _session_owners(sessions: QuerySet[CommandSession]) -> Iterator[_Owner]:
    """The newest MAX_OWNERS sessions, and one more to know that there are more."""
    rows = sessions.order_by("-created_at", "id").values_list(
        "id",
        "created_at",
        "stdout_first_offset",
        "stdout_next_offset",
        "stderr_first_offset",
        "stderr_next_offset",
        named=True,
    )
    for row in rows[: MAX_OWNERS + 1]:
        stdout = SearchedStream(
            session_id=row.id,
            name="stdout",
            start=row.stdout_first_offset,
            end=row.stdout_next_offset,
        )
        stderr = SearchedStream(
            session_id=row.id,
            name="stderr",
            start=row.stderr_first_offset,
            end=row.stderr_next_offset,
        )
        yield _Owner(-row.created_at.timestamp(), str(row.id), [stdout, stderr])


def _monitor_owners(monitors: QuerySet[Monitor]) -> Iterator[_Owner]:
    """The newest MAX_OWNERS monitors, and one more to know that there are more."""
    rows = monitors.order_by("-started_at", "id").values_list(
        "id", "session_id", "started_at", "first_offset", "next_offset", named=True
    )
    for row in rows[: MAX_OWNERS + 1]:
        log = SearchedStream(
            session_id=row.session_id,
            name="log",
            start=row.first_offset,
            end=row.next_offset,
            monitor_id=row.id,
        )
        yield _Owner(-row.started_at.timestamp(), f"{row.id:020}", [log])


def _from_start(streams: list[SearchedStream], scope: SearchScope) -> list[SearchedStream]:
    """Drops what comes before the place where the scope begins, and streams without bytes."""
    if scope.session_id is None:
        chosen = streams
    elif scope.older is None:
        chosen = [_from_offset(stream, scope.offset) for stream in streams if scope.names(stream)]
    else:
        first = next(
            (index for index, stream in enumerate(streams) if scope.names(stream)), len(streams)
        )
        chosen = [_from_offset(stream, scope.offset) for stream in streams[first : first + 1]]
        chosen += streams[first + 1 :]
    return [stream for stream in chosen if stream.start < stream.end]


def _from_offset(stream: SearchedStream, offset: int) -> SearchedStream:
    return replace(stream, start=max(stream.start, offset))
