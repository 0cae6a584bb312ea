"""Finding lines in what sessions printed and monitors read, by a linear-time regular expression. Nothing is indexed: a search reads.

Lines are searched as plain text, and found by the offset of the line in its stream. A search is bounded in results and in time; where it
stopped it can be continued, a project-wide one over the rest of the project. It works in short slices, so that other long reads get their
turns, and passes over what certainly has no match (``projects.line_filter``).
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects import monitor_log, output_log
from projects.database import at_length
from projects.errors import InvalidPattern, SessionNotFound
from projects.line_filter import LineFilter, Passed, block_pattern
from projects.models import CommandSession, Monitor
from projects.plain_lines import Line
from projects.turns import Pattern, compile_pattern

MAX_SECONDS: Final = 5.0
SLICE_SECONDS: Final = 0.1
MAX_TARGETS: Final = 1000
MAX_LINE_CHARS: Final = 500
_LINES_PER_LOOK_AT_THE_CLOCK: Final = 256

StreamChoice = Literal["stdout", "stderr", "log"]
"""``log``: what a monitor read."""
Older = Literal["all", "same_stream"]
"""What of the older output of a project."""


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
    older: Older | None


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
    older: Older | None = None,
    context_lines: int = 2,
    max_results: int = 20,
) -> SearchResult:
    """Lines that match, in one session or monitor from ``offset`` on, oldest first; or in all of the project, the newest sessions first.

    ``older``: and then in what is older in the project, too.

    Raises InvalidPattern and SessionNotFound.
    """
    compiled = _compiled(pattern)
    wanted = _Wanted(project_id, session_id, stream, offset, older)
    targets, behind = await at_length(_targets, wanted)
    search = _Search(compiled, targets, context_lines, max_results)
    deadline = asyncio.get_running_loop().time() + MAX_SECONDS
    while not search.is_over:
        await at_length(search.run_slice)
        if asyncio.get_running_loop().time() >= deadline:
            break
    return search.result(older=wanted.next_older, behind=behind)


def _compiled(pattern: str) -> Pattern:
    try:
        compiled = compile_pattern(pattern)
    except InvalidPattern as error:
        raise InvalidPattern(error.reason, "pattern") from None
    if compiled is None:
        raise InvalidPattern("it is empty", "pattern")
    return compiled


@dataclass(frozen=True)
class _Wanted:
    """What is asked for."""

    project_id: UUID
    session_id: UUID | None
    stream: StreamChoice | None
    offset: int
    older: Older | None

    @property
    def next_older(self) -> Older | None:
        """How a search that stops early is to be continued."""
        if self.session_id is not None:
            return self.older
        return "all" if self.stream is None else "same_stream"

    @property
    def only_stream(self) -> StreamChoice | None:
        """All that is searched is of this one."""
        return self.stream if self.session_id is None or self.older == "same_stream" else None

    def is_place(self, target: _Target) -> bool:
        """Whether it is a stream that was named."""
        return target.session_id == self.session_id and self.stream in {None, target.stream}


def _targets(wanted: _Wanted) -> tuple[list[_Target], _Target | None]:
    """(what is to be searched, in its order; the last of it if there is more behind). Raises SessionNotFound."""
    sessions = CommandSession.objects.filter(project_id=wanted.project_id)
    monitors = Monitor.objects.filter(project_id=wanted.project_id)
    if wanted.session_id is not None:
        named, tailed = sessions.filter(id=wanted.session_id), monitors.filter(session_id=wanted.session_id)
        begun = [*named.values_list("created_at", flat=True), *tailed.values_list("started_at", flat=True)]
        if not begun:
            raise SessionNotFound(wanted.session_id)
        if wanted.older:
            sessions, monitors = sessions.filter(created_at__lte=max(begun)), monitors.filter(started_at__lte=max(begun))
        else:
            sessions, monitors = named, tailed
    if wanted.only_stream is not None:
        sessions, monitors = (sessions.none(), monitors) if wanted.only_stream == "log" else (sessions, monitors.none())
    found: list[tuple[float, str, list[_Target]]] = []
    columns = ("stdout_first_offset", "stdout_next_offset", "stderr_first_offset", "stderr_next_offset")
    for pk, created_at, *ends in sessions.order_by("-created_at", "id").values_list("id", "created_at", *columns)[: MAX_TARGETS + 1]:
        both = [_Target(pk, "stdout", ends[0], ends[1], pk), _Target(pk, "stderr", ends[2], ends[3], pk)]
        found.append((-created_at.timestamp(), f"{pk}", both))
    columns = ("session_id", "started_at", "first_offset", "next_offset")
    for row_id, session_id, started_at, first, end in monitors.order_by("-started_at", "id").values_list("id", *columns)[: MAX_TARGETS + 1]:
        found.append((-started_at.timestamp(), f"{row_id:020}", [_Target(session_id, "log", first, end, row_id)]))
    found.sort(key=lambda entry: entry[:2])
    targets = [target for _, _, both in found[:MAX_TARGETS] for target in both if wanted.only_stream in {None, target.stream}]
    return _from_place(targets, wanted), targets[-1] if len(found) > MAX_TARGETS else None


def _from_place(targets: list[_Target], wanted: _Wanted) -> list[_Target]:
    """Those of the streams that are wanted, from the place on where to begin."""
    if wanted.session_id is None:
        chosen = targets
    elif wanted.older is None:
        chosen = [replace(t, start=max(t.start, wanted.offset)) for t in targets if wanted.is_place(t)]
    else:
        first = next((index for index, target in enumerate(targets) if wanted.is_place(target)), len(targets))
        chosen = [replace(t, start=max(t.start, wanted.offset)) for t in targets[first : first + 1]]
        chosen += targets[first + 1 :]
    return [target for target in chosen if target.start < target.end]


class _Search:
    """A search between its slices. Each slice runs in a database thread; no two run at once."""

    def __init__(self, pattern: Pattern, targets: list[_Target], context_lines: int, max_results: int) -> None:
        self._pattern = pattern
        for_blocks = block_pattern(pattern.compiled.pattern)
        self._for_blocks = _compiled(for_blocks).compiled if for_blocks is not None else None
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
        for count, (target, found) in enumerate(self._lines, 1):
            if target is not self._target:
                self._target = target
                self._open.clear()
                self._before.clear()
            if isinstance(found, Passed):
                self._pass(target, found)
            elif not self._take(target, found):
                self.is_over = True
                return
            elif count % _LINES_PER_LOOK_AT_THE_CLOCK:
                continue
            if time.monotonic() > until:
                return
        self.is_over = True

    def result(self, *, older: Older | None, behind: _Target | None) -> SearchResult:
        """What was found so far. ``behind``: the last of the targets, if there is more behind it."""
        place = self._place
        if self.is_over and not self._is_full:
            place = _place(behind, behind.end) if behind is not None else None
        reason: Literal["results", "time"] | None = None if place is None else "results" if self._is_full else "time"
        place = replace(place, older=older) if place is not None else None
        return SearchResult(hits=self._hits, searched_bytes=self._searched, stopped_by=reason, next=place)

    def _pass(self, target: _Target, passed: Passed) -> None:
        if self._open:
            # Neighbours of the last hit.
            for line in passed.lines():
                self._take(target, line)
            return
        self._searched += len(passed.data)
        self._before.extend(line.text[:MAX_LINE_CHARS] for line in passed.last_lines(self._context))
        self._place = _place(target, passed.offset + len(passed.data))

    def _take(self, target: _Target, line: Line) -> bool:
        """False: there are enough."""
        text = line.text
        self._searched += len(line.raw) + line.is_ended
        is_hit = self._pattern.compiled.search(text) is not None
        text = text[:MAX_LINE_CHARS]
        if is_hit and len(self._hits) >= self._limit:
            self._place = _place(target, line.offset)
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
        self._place = _place(target, line.offset + len(line.raw) + line.is_ended)
        return True

    def _all_lines(self, targets: list[_Target]) -> Iterator[tuple[_Target, Line | Passed]]:
        for target in targets:
            splitter = LineFilter(self._for_blocks, target.start)
            for piece in _pieces(target):
                lines = splitter.feed(piece) if isinstance(piece, bytes) else splitter.finish(piece)
                for found in lines:
                    yield target, found
            for line in splitter.finish():
                yield target, line


def _place(target: _Target, offset: int) -> SearchPosition:
    return SearchPosition(session_id=target.session_id, stream=target.stream, offset=offset, older=None)


def _pieces(target: _Target) -> Iterator[bytes | int]:
    """Bytes, or where the stream goes on behind a gap."""
    if isinstance(target.key, int):
        yield from monitor_log.pieces(target.key, target.start, target.end)
        return
    stream: Stream = "stderr" if target.stream == "stderr" else "stdout"
    for piece in output_log.pieces(target.key, stream, target.start, target.end):
        yield piece if isinstance(piece, bytes) else piece.to_offset
