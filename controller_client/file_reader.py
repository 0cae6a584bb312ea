"""One look at a log: the bytes from a place on, and what became of the file meanwhile. Nothing is remembered between two looks.

A place is the file's identity (device and inode), a position, and a mark of the bytes before it. A writer's log is a series of files:
the one that has the name, and before it those that had it, which are looked for beside it. So a file that was renamed is read to
its end before the next one; and one that was cut goes on in its copy, if rotation made one. The mark tells what the identity and the
length do not: content that was cut and has grown again, and an inode that was given to another file.
"""

import codecs
import errno
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import msgspec

from controller_client.log_paths import FileRefused, LogPaths, Place, identity_of, is_plain, not_found, read_error
from controller_client.protocol.limits import MAX_FILE_CHUNK_BYTES
from controller_client.protocol.messages import FileChunk, ReadFile, ResetReason

MARK_BYTES: Final = 256
# A writer that was told to reopen its log, and others that write to it, may write to the old one a little longer.
QUIET_SECONDS: Final = 0.25
# What a sparse file has less of than this is read as the zeros it stands for.
LEAST_HOLE_BYTES: Final = 1 << 20
MAX_ENTRIES: Final = 10_000
_COMPRESSED: Final = (".gz", ".xz", ".bz2", ".zst", ".lz4", ".Z", ".zip")
_SEEK_DATA: Final = getattr(os, "SEEK_DATA", None)


def look(paths: LogPaths, ask: ReadFile) -> FileChunk:
    """The answer to ``ask`` as things are now, without waiting. Never raises."""
    try:
        with paths.place(ask.path) as place, ExitStack() as held:
            chunk = _Series(place, held).read(ask)
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

    def mark(self, position: int) -> str:
        """Stands for what is just before ``position``, and for the time of the last write."""
        length = min(position, MARK_BYTES)
        return f"{length}:{self._digest(position, length)}:{self.mtime_ns}"

    def continues(self, position: int, mark: str) -> bool:
        """Whether it still has what was before ``position``."""
        length, digest, _ = _fields(mark)
        return self.size >= position and (length == 0 or (length <= position and self._digest(position, length) == digest))

    def _digest(self, position: int, length: int) -> str:
        return blake2b(os.pread(self.descriptor, length, position - length), digest_size=16).hexdigest()

    def chunk(self, position: int, max_bytes: int, *, is_over: bool = False) -> FileChunk:
        """What it has from ``position`` on. ``is_over``: another file goes on where this one ends, so an incomplete character stays one."""
        size = self.size
        start = self._skip_hole(position, size) if max_bytes else position
        raw = os.pread(self.descriptor, min(max_bytes, MAX_FILE_CHUNK_BYTES), start) if start is not None else b""
        start = position if start is None else start
        end = start + len(raw)
        data = raw if is_over and end >= size else raw[: _complete_length(raw)]
        has_left = end < size and (bool(raw) or max_bytes == 0)
        return FileChunk(
            reply_to="",
            identity=self.identity,
            position=start,
            data=data,
            mark=self.mark(start + len(data)),
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


class _Series:
    """The files that have, or had, one name."""

    def __init__(self, place: Place, held: ExitStack) -> None:
        self._place = place
        self._held = held
        self._problem: FileRefused = not_found()
        self._current = self._try_open(None)

    def read(self, ask: ReadFile) -> FileChunk:
        """Raises FileRefused, OSError."""
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
        following = self._following(_fields(ask.mark)[2])
        if following is None:
            raise self._problem
        return self._anew(following, ask, "replaced")

    def _read_old(self, old: _Log, position: int, ask: ReadFile) -> FileChunk:
        # In this order: once the next one is written to, what the old one has is all that it gets.
        following = self._following(old.mtime_ns, but=old)
        is_over = following is not None and following.size > 0 and old.is_quiet()
        chunk = old.chunk(position, ask.max_bytes, is_over=is_over)
        if following is None or not is_over or chunk.data or chunk.position > position or ask.max_bytes == 0:
            return chunk
        return msgspec.structs.replace(following.chunk(0, ask.max_bytes), reset="rotated")

    def _anew(self, log: _Log, ask: ReadFile, reason: ResetReason) -> FileChunk:
        chunk = log.chunk(0, ask.max_bytes)
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
        inode = int(identity.rpartition(":")[2]) if identity.rpartition(":")[2].isdecimal() else -1
        for entry in self._entries():
            if entry.inode() == inode and (log := self._try_open(entry.name)) is not None and log.identity == identity:
                return log
        return None

    def _copy(self, position: int, mark: str) -> _Log | None:
        """A copy that was made before the file was cut."""
        if not _fields(mark)[0]:
            return None
        logs = (self._try_open(name) for _, name in reversed(self._siblings()))
        return next((log for log in logs if log is not None and log.continues(position, mark)), None)

    def _following(self, since_ns: int, but: _Log | None = None) -> _Log | None:
        """The first file with anything in it that was written to after ``since_ns``; the one that has the name now is the last."""
        for mtime_ns, name in self._siblings():
            if (
                mtime_ns > since_ns
                and (log := self._try_open(name)) is not None
                and (but is None or log.identity != but.identity)
                and log.size
            ):
                return log
        return self._current

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
