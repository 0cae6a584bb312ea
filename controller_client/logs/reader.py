"""One look at a log: the bytes from a place on, and what became of the file meanwhile.

A look remembers nothing: its caller carries the place from one look to the next. A place is the
file's identity (device and inode), a position, and a mark of the bytes before it.

A log is a series of files: the one that has the name now, and those that had it before.

* A file that was renamed is read to its end before the next one.
* A file that was cut goes on in its copy, if rotation made one.
* A writer that did not notice the rotation may go on writing to a file that was left. What such a
  file has got since is told before what is new in the file that has the name.
"""

from contextlib import ExitStack
from typing import Literal

import msgspec

from controller_client.logs.log_file import LogFile, Mark
from controller_client.logs.paths import FileRefused, LogPaths, read_error
from controller_client.logs.series import LogSeries, inode_of
from controller_client.protocol.messages import FileChunk, ReadFile


def look(paths: LogPaths, ask: ReadFile) -> FileChunk:
    """Return the answer to ``ask`` as things are now, without waiting. Never raises."""
    try:
        with paths.place(ask.path) as place, ExitStack() as held:
            chunk = _Look(ask, LogSeries(place, held)).take()
            return msgspec.structs.replace(chunk, reply_to=ask.id)
    except FileRefused as refused:
        return FileChunk(reply_to=ask.id, failure=refused.failure)
    except OSError as error:
        return FileChunk(reply_to=ask.id, failure=read_error(error).failure)


def has_news(chunk: FileChunk) -> bool:
    """Return whether an answer has anything that its caller waits for."""
    return bool(chunk.data or chunk.has_more or chunk.reset or chunk.gap or chunk.failure)


class _Look:
    """One look for one question."""

    def __init__(self, ask: ReadFile, series: LogSeries) -> None:
        self._ask = ask
        self._series = series
        self._position = ask.position or 0
        self._mark = Mark.parse(ask.mark)
        self._former = {place.identity: place for place in ask.former}

    def take(self) -> FileChunk:
        """Return the answer. Raises FileRefused, OSError."""
        chunk = self._read()
        return self._late(chunk) or chunk

    def _read(self) -> FileChunk:
        ask, current, position = self._ask, self._series.current, self._position
        if not ask.identity:
            if current is None:
                raise self._series.problem
            start = current.size if ask.position is None else ask.position
            return current.chunk(start, ask.max_bytes)
        if current is not None and current.identity == ask.identity:
            if current.continues(position, self._mark):
                return current.chunk(position, ask.max_bytes)
            copy = self._copy()
            return self._read_old(copy) if copy else self._anew(current, "truncated")
        old = self._series.renamed(ask.identity)
        if old is not None and old.continues(position, self._mark):
            return self._read_old(old)
        following = self._following()
        if following is None:
            raise self._series.problem
        return self._anew(following, "replaced")

    def _read_old(self, old: LogFile) -> FileChunk:
        # In this order: once the next file is written to, what the old one has is all that it gets.
        following = self._following(but=old)
        is_over = (
            following is not None
            and following.size > 0
            and (old.is_quiet() or self._series.is_settled())
        )
        # Late writes change its own time, which then says nothing about the others.
        chunk = old.chunk(
            self._position, self._ask.max_bytes, is_over=is_over, known_ns=self._mark.known_ns
        )
        has_rest = bool(chunk.data) or chunk.position > self._position
        if following is None or not is_over or has_rest or self._ask.max_bytes == 0:
            return chunk
        return msgspec.structs.replace(self._from_start(following), reset="rotated")

    def _late(self, chunk: FileChunk) -> FileChunk | None:
        """Return what a file that was left has got since, if ``chunk`` is the last there is."""
        ask, current = self._ask, self._series.current
        if not ask.former or ask.max_bytes == 0 or chunk.has_more:
            return None
        names = self._series.names_by_inode()
        own = {ask.identity, current.identity if current is not None else ""}
        # A file that was left empty is told by its identity alone, which may be another file's by
        # now. So it is asked only once all files of the series are read.
        is_last = current is not None and chunk.identity == current.identity
        for place in ask.former:
            name = names.get(inode_of(place.identity)) if place.identity not in own else None
            log = self._series.try_open(name) if name is not None else None
            # The name may be another file's by now, whose place is another one.
            if log is None or log.identity != place.identity:
                continue
            is_left_empty = place.position == 0
            if not (self._was_read(log) or (is_last and is_left_empty)):
                continue
            is_over, known_ns = log.is_quiet(), Mark.parse(place.mark).known_ns
            found = log.chunk(place.position, ask.max_bytes, is_over=is_over, known_ns=known_ns)
            if found.data or found.gap:
                has_more = has_news(chunk) or log.has_left(
                    found.position + len(found.data), is_over=log.is_quiet()
                )
                return msgspec.structs.replace(found, late=True, has_more=has_more)
        return None

    def _from_start(self, log: LogFile) -> FileChunk:
        """Read the first file that is not read yet.

        All other unread files were last written to when this one was, or later.
        """
        current = self._series.current
        is_last = current is not None and log.identity == current.identity
        known_ns = None if is_last else max(0, log.mtime_ns - 1)
        return log.chunk(0, self._ask.max_bytes, known_ns=known_ns)

    def _anew(self, log: LogFile, reason: Literal["truncated", "replaced"]) -> FileChunk:
        # There may be a hole, too. Of two gaps the one whose length nobody knows says more.
        return msgspec.structs.replace(
            self._from_start(log), reset=reason, gap=reason, gap_bytes=None
        )

    def _copy(self) -> LogFile | None:
        """Find a copy that was made before the file was cut."""
        if not self._mark.length:
            return None
        for _, name in reversed(self._series.siblings()):
            log = self._series.try_open(name)
            if log is not None and log.continues(self._position, self._mark):
                return log
        return None

    def _following(self, but: LogFile | None = None) -> LogFile | None:
        """Find the first file with anything in it that is not known yet.

        The file that has the name now is the last.
        """
        for _ in self._series.looks():
            for mtime_ns, name in self._series.siblings():
                if mtime_ns <= self._mark.known_ns:
                    continue
                log = self._series.try_open(name)
                if log is None or not log.size or (but and log.identity == but.identity):
                    continue
                if not self._was_read(log):
                    return log
        return self._series.current

    def _was_read(self, log: LogFile) -> bool:
        """Return whether the file was left, and was written to again since.

        Then its new time does not make it the next one.
        """
        place = self._former.get(log.identity)
        return (
            place is not None
            and place.position > 0
            and log.continues(place.position, Mark.parse(place.mark))
        )
