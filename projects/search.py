"""Finding lines in what sessions printed and monitors read, by a linear-time regular expression. Nothing is indexed: a search reads.

Lines are searched as plain text, and found by the offset of the line in its stream. A search is bounded in results and in time; where it
stopped it can be continued. It works in short slices, so that other long reads get their turns.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects import monitor_log, output_log
from projects.database import at_length
from projects.errors import InvalidPattern, SessionNotFound
from projects.models import CommandSession, Monitor
from projects.plain_lines import Line, LineSplitter
from projects.turns import Pattern, compile_pattern

MAX_SECONDS: Final = 5.0
SLICE_SECONDS: Final = 0.1
MAX_TARGETS: Final = 1000
MAX_LINE_CHARS: Final = 500
_LINES_PER_LOOK_AT_THE_CLOCK: Final = 256

StreamChoice = Literal["stdout", "stderr", "log"]
"""``log``: what a monitor read."""


@dataclass(kw_only=True)
class Hit:
    """A line that matches, ``offset`` bytes from the beginning of its stream, with its neighbours."""

    session_id: UUID
    stream: StreamChoice
    offset: int
    line: str
    before: list[str]
    after: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SearchPosition:
    """Where a search that stopped early goes on."""

    session_id: UUID
    stream: StreamChoice
    offset: int


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """``stopped_by`` None: everything was searched."""

    hits: list[Hit]
    searched_bytes: int
    stopped_by: Literal["results", "time"] | None
    next: SearchPosition | None


@dataclass(frozen=True, slots=True)
class _Target:
    """One stream; ``key`` finds its bytes ``[start, end)``."""

    session_id: UUID
    stream: StreamChoice
    start: int
    end: int
    key: UUID | int


async def output_search(
    project_id: UUID,
    pattern: str,
    *,
    session_id: UUID | None = None,
    stream: StreamChoice | None = None,
    offset: int = 0,
    context_lines: int = 2,
    max_results: int = 20,
) -> SearchResult:
    """Lines that match, in one session or monitor from ``offset`` on, oldest first; or in all of the project, the newest sessions first.

    Raises InvalidPattern and SessionNotFound.
    """
    compiled = _compiled(pattern)
    targets = await at_length(_targets, project_id, session_id, stream, offset)
    search = _Search(compiled, targets, context_lines, max_results)
    deadline = asyncio.get_running_loop().time() + MAX_SECONDS
    while not search.is_over and asyncio.get_running_loop().time() < deadline:
        await at_length(search.run_slice)
    return search.result()


def _compiled(pattern: str) -> Pattern:
    try:
        compiled = compile_pattern(pattern)
    except InvalidPattern as error:
        raise InvalidPattern(error.reason, "pattern") from None
    if compiled is None:
        raise InvalidPattern("it is empty", "pattern")
    return compiled


def _targets(project_id: UUID, session_id: UUID | None, stream: StreamChoice | None, offset: int) -> list[_Target]:
    """What is to be searched, in its order. Raises SessionNotFound."""
    sessions = CommandSession.objects.filter(project_id=project_id)
    monitors = Monitor.objects.filter(project_id=project_id)
    if session_id is not None:
        sessions, monitors = sessions.filter(id=session_id), monitors.filter(session_id=session_id)
        if not (sessions.exists() or monitors.exists()):
            raise SessionNotFound(session_id)
    found: list[tuple[float, _Target]] = []
    for row in sessions.order_by("-created_at").values_list(
        "id", "created_at", "stdout_first_offset", "stdout_next_offset", "stderr_first_offset", "stderr_next_offset"
    )[:MAX_TARGETS]:
        found.append((row[1].timestamp(), _Target(row[0], "stdout", row[2], row[3], row[0])))
        found.append((row[1].timestamp(), _Target(row[0], "stderr", row[4], row[5], row[0])))
    for pk, wanted, started_at, first, end in monitors.order_by("-started_at").values_list(
        "id", "session_id", "started_at", "first_offset", "next_offset"
    )[:MAX_TARGETS]:
        found.append((started_at.timestamp(), _Target(wanted, "log", first, end, pk)))
    found.sort(key=lambda pair: -pair[0])
    chosen = [target for _, target in found if stream in (None, target.stream)]
    if session_id is not None and offset:
        chosen = [_Target(t.session_id, t.stream, max(t.start, offset), t.end, t.key) for t in chosen]
    return [target for target in chosen if target.start < target.end]


class _Search:
    """A search between its slices. Each slice runs in a database thread; no two run at once."""

    def __init__(self, pattern: Pattern, targets: list[_Target], context_lines: int, max_results: int) -> None:
        self._pattern = pattern
        self._context, self._limit = context_lines, max_results
        self._lines = self._all_lines(targets)
        self._hits: list[Hit] = []
        self._open: deque[Hit] = deque()
        self._before: deque[str] = deque(maxlen=context_lines)
        self._place: SearchPosition | None = None
        self._target: _Target | None = None
        self._searched = 0
        self.is_over = not targets
        self._is_full = False

    def run_slice(self) -> None:
        """Goes on for a moment."""
        until = time.monotonic() + SLICE_SECONDS
        for count, (target, line) in enumerate(self._lines, 1):
            if target is not self._target:
                self._target = target
                self._open.clear()
                self._before.clear()
            if not self._take(target, line):
                self.is_over = True
                return
            if count % _LINES_PER_LOOK_AT_THE_CLOCK == 0 and time.monotonic() > until:
                return
        self._place, self.is_over = None, True

    def result(self) -> SearchResult:
        """What was found so far."""
        reason: Literal["results", "time"] | None = "results" if self._is_full else None if self.is_over else "time"
        return SearchResult(hits=self._hits, searched_bytes=self._searched, stopped_by=reason, next=self._place if reason else None)

    def _take(self, target: _Target, line: Line) -> bool:
        """False: there are enough."""
        text = line.text
        self._searched += len(line.raw) + line.is_ended
        is_hit = self._pattern.compiled.search(text) is not None
        text = text[:MAX_LINE_CHARS]
        if is_hit and len(self._hits) >= self._limit:
            self._place = SearchPosition(session_id=target.session_id, stream=target.stream, offset=line.offset)
            self._is_full = True
            return False
        for hit in self._open:
            hit.after.append(text)
        while self._open and len(self._open[0].after) >= self._context:
            self._open.popleft()
        if is_hit:
            hit = Hit(session_id=target.session_id, stream=target.stream, offset=line.offset, line=text, before=list(self._before))
            self._hits.append(hit)
            if self._context:
                self._open.append(hit)
        self._before.append(text)
        self._place = SearchPosition(session_id=target.session_id, stream=target.stream, offset=line.offset + len(line.raw) + line.is_ended)
        return True

    def _all_lines(self, targets: list[_Target]) -> Iterator[tuple[_Target, Line]]:
        for target in targets:
            splitter = LineSplitter(target.start)
            for piece in _pieces(target):
                lines = splitter.feed(piece) if isinstance(piece, bytes) else splitter.finish(piece)
                for line in lines:
                    yield target, line
            for line in splitter.finish():
                yield target, line


def _pieces(target: _Target) -> Iterator[bytes | int]:
    """Bytes, or where the stream goes on behind a gap."""
    if isinstance(target.key, int):
        yield from monitor_log.pieces(target.key, target.start, target.end)
        return
    stream: Stream = "stderr" if target.stream == "stderr" else "stdout"
    for piece in output_log.pieces(target.key, stream, target.start, target.end):
        yield piece if isinstance(piece, bytes) else piece.to_offset
