"""One look at a log: the bytes from a place on, and what became of the file meanwhile. Nothing is remembered between two looks.

A place is the file's identity (device and inode), a position, and a mark: of the bytes before it, and of the time up to which all others
of the series are known. A writer's log is a series of files: the one that has the name, and before it those that had it, which are looked
for beside it. So a file that was renamed is read to its end before the next one; and one that was cut goes on in its copy, if rotation
made one. Whoever did not notice the rotation may write on to a file that was left: what such files have got since is told before what is
new in the one that has the name. The mark tells what identity and length do not: content that was cut and has grown again, and an inode
that was given to another file.
"""

import codecs
import errno
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final

import msgspec

from controller_client.log_paths import FileRefused, LogPaths, Place, identity_of, is_plain, not_found, read_error
from controller_client.protocol.limits import MAX_FILE_CHUNK_BYTES
from controller_client.protocol.messages import FileChunk, FilePlace, ReadFile, ResetReason

MARK_BYTES: Final = 256
# A writer that was told to reopen its log, and others that write to it, may write to the old one a little longer.
QUIET_SECONDS: Final = 0.25
# One that is never quiet is left at its end all the same once nothing has been renamed for so long: the next one has lines, too.
SETTLED_SECONDS: Final = 2.0
# What a sparse file has less of than this is read as the zeros it stands for.
LEAST_HOLE_BYTES: Final = 1 << 20
MAX_ENTRIES: Final = 10_000
# A name may be missed by who lists a directory while it is renamed. So what is not found is looked for again, until nothing was renamed
# meanwhile; a directory's time is no finer than a tick of the kernel's clock.
TICK_SECONDS: Final = 0.02
MAX_LISTINGS: Final = 6
_COMPRESSED: Final = (".gz", ".xz", ".bz2", ".zst", ".lz4", ".Z", ".zip")
_SEEK_DATA: Final = getattr(os, "SEEK_DATA", None)


def look(paths: LogPaths, ask: ReadFile) -> FileChunk:
    """The answer to ``ask`` as things are now, without waiting. Never raises."""
    try:
        with paths.place(ask.path) as place, ExitStack() as held:
            series = _Series(place, held)
            chunk = series.read(ask)
            chunk = series.late(ask, chunk) or chunk
            return msgspec.structs.replace(chunk, reply_to=ask.id)
    except FileRefused as refused:
        return FileChunk(reply_to=ask.id, failure=refused.failure)
    except OSError as error:
        return FileChunk(reply_to=ask.id, failure=read_error(error).failure)


def has_news(chunk: FileChunk) -> bool:
    """Whether there is anything in an answer that a caller waits for."""
    return bool(chunk.data or chunk.has_more or chunk.reset or chunk.gap or chunk.failure)


@dataclass(frozen=True)
class _Log:
    """An open file of the series."""

    descriptor: int
    identity: str

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    @property
    def mtime_ns(self) -> int:
        return max(0, os.fstat(self.descriptor).st_mtime_ns)

    def is_quiet(self) -> bool:
        age = time.time() - self.mtime_ns / 1e9
        return not 0 <= age < QUIET_SECONDS

    def mark(self, position: int, known_ns: int | None = None) -> str:
        """Stands for what is just before ``position``. Others of the series that were last written to before ``known_ns`` are known."""
        length = min(position, MARK_BYTES)
        return f"{length}:{self._digest(position, length)}:{self.mtime_ns if known_ns is None else known_ns}"

    def continues(self, position: int, mark: str) -> bool:
        """Whether it still has what was before ``position``."""
        length, digest, _ = _fields(mark)
        return self.size >= position and (length == 0 or (length <= position and self._digest(position, length) == digest))

    def _digest(self, position: int, length: int) -> str:
        return blake2b(os.pread(self.descriptor, length, position - length), digest_size=16).hexdigest()

    def chunk(self, position: int, max_bytes: int, *, is_over: bool = False, known_ns: int | None = None) -> FileChunk:
        """What it has from ``position`` on. ``is_over``: another file goes on where this one ends, so an incomplete character stays one."""
        size = self.size
        start = self._skip_hole(position, size) if max_bytes else position
        raw = os.pread(self.descriptor, min(max_bytes, MAX_FILE_CHUNK_BYTES), start) if start is not None else b""
        start = position if start is None else start
        raw = raw[: self._written_length(start, raw, size)]
        end = start + len(raw)
        data = raw if is_over and end >= size else raw[: _complete_length(raw)]
        has_left = end < size and (bool(raw) or max_bytes == 0)
        return FileChunk(
            reply_to="",
            identity=self.identity,
            position=start,
            data=data,
            mark=self.mark(start + len(data), known_ns),
            has_more=has_left or is_over,
            gap="hole" if start > position else None,
            gap_bytes=start - position if start > position else None,
        )

    def _skip_hole(self, position: int, size: int) -> int | None:
        """Where there is data again; None: nowhere yet. What is allocated in advance is a hole until it is written."""
        if _SEEK_DATA is None or size - position < LEAST_HOLE_BYTES:
            return position
        try:
            start = os.lseek(self.descriptor, position, _SEEK_DATA)
        except OSError as error:
            return None if error.errno == errno.ENXIO else position
        return start if start - position >= LEAST_HOLE_BYTES else position

    def _written_length(self, start: int, raw: bytes, size: int) -> int:
        """How much of ``raw`` is written: the zeros before a hole that reaches to the end are space for what is to come."""
        if _SEEK_DATA is None or size - start < LEAST_HOLE_BYTES or not raw.endswith(b"\0"):
            return len(raw)
        with suppress(OSError):
            hole = os.lseek(self.descriptor, start, os.SEEK_HOLE)
            if hole - start >= len(raw) or size - hole < LEAST_HOLE_BYTES:
                return len(raw)
            with suppress(OSError):
                os.lseek(self.descriptor, hole, _SEEK_DATA)
                return len(raw)
            return len(raw[: hole - start].rstrip(b"\0"))
        return len(raw)


class _Series:
    """The files that have, or had, one name."""

    def __init__(self, place: Place, held: ExitStack) -> None:
        self._place = place
        self._held = held
        self._problem: FileRefused = not_found()
        self._former: dict[str, FilePlace] = {}
        self._current = self._try_open(None)

    def read(self, ask: ReadFile) -> FileChunk:
        """Raises FileRefused, OSError."""
        self._former = {place.identity: place for place in ask.former}
        current = self._current
        if not ask.identity:
            if current is None:
                raise self._problem
            return current.chunk(current.size if ask.position is None else ask.position, ask.max_bytes)
        position = ask.position or 0
        if current is not None and current.identity == ask.identity:
            if current.continues(position, ask.mark):
                return current.chunk(position, ask.max_bytes)
            copy = self._copy(position, ask.mark)
            return self._read_old(copy, position, ask) if copy else self._anew(current, ask, "truncated")
        old = self._renamed(ask.identity)
        if old is not None and old.continues(position, ask.mark):
            return self._read_old(old, position, ask)
        following = self._following(ask)
        if following is None:
            raise self._problem
        return self._anew(following, ask, "replaced")

    def _read_old(self, old: _Log, position: int, ask: ReadFile) -> FileChunk:
        # In this order: once the next one is written to, what the old one has is all that it gets.
        following = self._following(ask, but=old)
        is_over = following is not None and following.size > 0 and (old.is_quiet() or self._is_settled())
        # Late writes change its own time, which then says nothing about the others.
        chunk = old.chunk(position, ask.max_bytes, is_over=is_over, known_ns=_fields(ask.mark)[2])
        if following is None or not is_over or chunk.data or chunk.position > position or ask.max_bytes == 0:
            return chunk
        return msgspec.structs.replace(self._from_start(following, ask), reset="rotated")

    def late(self, ask: ReadFile, chunk: FileChunk) -> FileChunk | None:
        """What a file that was left has got since, once ``chunk`` is the last of what is there."""
        if not ask.former or ask.max_bytes == 0 or chunk.has_more:
            return None
        names = {entry.inode(): entry.name for entry in self._entries()}
        own = {ask.identity, self._current.identity if self._current is not None else ""}
        # Nothing but its identity tells one that was left empty, which may be another's by now: so only once all of the series are read.
        is_last = self._current is not None and chunk.identity == self._current.identity
        for place in ask.former:
            name = names.get(_inode_of(place.identity)) if place.identity not in own else None
            log = self._try_open(name) if name is not None else None
            if log is None or not (self._was_read(log) or (is_last and place.position == 0 and log.identity == place.identity)):
                continue
            found = log.chunk(place.position, ask.max_bytes, is_over=log.is_quiet(), known_ns=_fields(place.mark)[2])
            if found.data or found.gap:
                has_more = has_news(chunk) or found.position + len(found.data) < log.size
                return msgspec.structs.replace(found, late=True, has_more=has_more)
        return None

    def _is_settled(self) -> bool:
        """Nothing was renamed in the directory of late."""
        return not 0 <= time.time() - os.fstat(self._place.directory).st_mtime < SETTLED_SECONDS

    def _from_start(self, log: _Log, ask: ReadFile) -> FileChunk:
        """Of those that are not read yet, the first; all others were last written to when it was, or later."""
        is_last = self._current is not None and log.identity == self._current.identity
        return log.chunk(0, ask.max_bytes, known_ns=None if is_last else max(0, log.mtime_ns - 1))

    def _anew(self, log: _Log, ask: ReadFile, reason: ResetReason) -> FileChunk:
        chunk = self._from_start(log, ask)
        if chunk.gap is not None:
            # Of two gaps the one whose length nobody knows says more.
            chunk = msgspec.structs.replace(chunk, gap_bytes=None)
        return msgspec.structs.replace(chunk, reset=reason, gap="truncated" if reason == "truncated" else "replaced")

    # ---- finding files

    def _try_open(self, name: str | None) -> _Log | None:
        try:
            descriptor = self._place.open(name)
        except FileRefused as refused:
            if name is None:
                self._problem = refused
                if refused.failure.code == "PATH_NOT_ALLOWED":
                    raise
            return None
        self._held.callback(os.close, descriptor)
        return _Log(descriptor, identity_of(os.fstat(descriptor)))

    def _renamed(self, identity: str) -> _Log | None:
        return self._listed(partial(self._of_identity, identity))

    def _of_identity(self, identity: str) -> _Log | None:
        inode = _inode_of(identity)
        for entry in self._entries():
            if entry.inode() == inode and (log := self._try_open(entry.name)) is not None and log.identity == identity:
                return log
        return None

    def _listed(self, find: Callable[[], _Log | None]) -> _Log | None:
        """What ``find`` finds in the directory; nothing only if there is nothing whatever is being renamed meanwhile."""
        for _ in range(MAX_LISTINGS):
            before = os.fstat(self._place.directory).st_mtime_ns
            found = find()
            is_sure = before == os.fstat(self._place.directory).st_mtime_ns and not 0 <= time.time() - before / 1e9 < TICK_SECONDS
            if is_sure or found is not None:
                return found
            time.sleep(TICK_SECONDS)  # noqa: TID251 - in a thread for looks; there is no event for a clock's tick
        return None

    def _copy(self, position: int, mark: str) -> _Log | None:
        """A copy that was made before the file was cut."""
        if not _fields(mark)[0]:
            return None
        logs = (self._try_open(name) for _, name in reversed(self._siblings()))
        return next((log for log in logs if log is not None and log.continues(position, mark)), None)

    def _following(self, ask: ReadFile, but: _Log | None = None) -> _Log | None:
        """The first file with anything in it that is not known yet; the one that has the name now is the last."""
        return self._listed(partial(self._unknown, _fields(ask.mark)[2], but)) or self._current

    def _unknown(self, known_ns: int, but: _Log | None) -> _Log | None:
        for mtime_ns, name in self._siblings():
            if mtime_ns <= known_ns or (log := self._try_open(name)) is None or not log.size:
                continue
            if (but is None or log.identity != but.identity) and not self._was_read(log):
                return log
        return None

    def _was_read(self, log: _Log) -> bool:
        """It has been written to again after it was left; then its new time does not make it the next one."""
        place = self._former.get(log.identity)
        return place is not None and place.position > 0 and log.continues(place.position, place.mark)

    def _siblings(self) -> list[tuple[int, str]]:
        """(time of the last write, name) of the files that may have had the name before, oldest first."""
        pattern = _rotated_name(self._place.name)
        found = []
        for entry in self._entries():
            if pattern.fullmatch(entry.name) and not entry.name.endswith(_COMPRESSED):
                with suppress(OSError):
                    status = os.stat(entry.name, dir_fd=self._place.directory, follow_symlinks=False)
                    if is_plain(status):
                        found.append((status.st_mtime_ns, entry.name))
        return sorted(found)

    def _entries(self) -> Iterator["os.DirEntry[str]"]:
        try:
            directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._place.directory)
        except OSError:
            # Entered without being readable: then only the name itself is known.
            return
        try:
            with os.scandir(directory) as entries:
                for count, entry in enumerate(entries):
                    if count >= MAX_ENTRIES:
                        return
                    yield entry
        finally:
            os.close(directory)


def _inode_of(identity: str) -> int:
    inode = identity.rpartition(":")[2]
    return int(inode[:20]) if inode.isdecimal() else -1


def series_of(name: str) -> re.Pattern[str]:
    """The name itself, and those that rotation gives."""
    return re.compile(f"{re.escape(name)}|{_rotated_name(name).pattern}")


def _rotated_name(name: str) -> re.Pattern[str]:
    """Names such as ``app.log.1``, ``app.log-20261120``, ``app-20261120.log``, ``app.log.old`` of ``app.log``."""
    stem, dot, suffix = name.rpartition(".")
    after = rf"{re.escape(name)}[._-](?:\d[\w.:-]*|old|bak|prev)"
    return re.compile(rf"{after}|{re.escape(stem)}[._-]\d[\w.:-]*{re.escape(dot + suffix)}" if stem else after)


def _fields(mark: str) -> tuple[int, str, int]:
    """(length, digest, time of the last write) of a mark; of one that is none, one that nothing continues."""
    parts: Sequence[str] = mark.split(":") if mark else ("0", "", "0")
    if len(parts) != 3 or not (parts[0].isdecimal() and parts[2].isdecimal()):
        return MARK_BYTES, "", 0
    return min(int(parts[0][:4]), MARK_BYTES), parts[1], int(parts[2][:20])


def _complete_length(data: bytes) -> int:
    """How many bytes are whole characters of UTF-8, or never will be."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for back in range(1, min(4, len(data) + 1)):
        if data[-back] & 0xC0 != 0x80:
            decoder.decode(data[-back:])
            return len(data) - len(decoder.getstate()[0])
    return len(data)
