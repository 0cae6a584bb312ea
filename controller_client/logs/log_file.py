"""One open file of a log: reading it from a place on, and recognising that place later.

A place is recognised by its mark. The mark tells what identity and length do not: content that was
cut and has grown again, and an inode that was given to another file.
"""

import codecs
import errno
import os
import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Self

from controller_client.protocol.limits import MAX_FILE_CHUNK_BYTES
from controller_client.protocol.messages import FileChunk

MARK_BYTES: Final = 256
# A writer that was told to reopen its log, and others that write to the log, may write to the old
# file a little longer.
QUIET_SECONDS: Final = 0.25
# A sparse file that has less of a hole than this is read as the zeros that the hole stands for.
LEAST_HOLE_BYTES: Final = 1 << 20
# Nothing but a hole from there on; a file system that knows none.
_NO_HOLES: Final = (errno.ENXIO, errno.EINVAL, errno.EOPNOTSUPP)
_SEEK_DATA: Final = getattr(os, "SEEK_DATA", None)


@dataclass(frozen=True)
class Mark:
    """The proof of a place: a digest of the ``length`` bytes before it.

    ``known_ns``: other files of the series that were last written to by then are known.
    """

    length: int
    digest: str
    known_ns: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a mark as ``str`` writes it; a text that is no mark gives one nothing continues."""
        parts = text.split(":") if text else ["0", "", "0"]
        if len(parts) != 3 or not (parts[0].isdecimal() and parts[2].isdecimal()):
            return cls(MARK_BYTES, "", 0)
        return cls(min(int(parts[0][:4]), MARK_BYTES), parts[1], int(parts[2][:20]))

    def __str__(self) -> str:
        return f"{self.length}:{self.digest}:{self.known_ns}"


@dataclass(frozen=True)
class LogFile:
    """An open file of a series. Whoever opened ``descriptor`` closes it."""

    descriptor: int
    identity: str

    @property
    def size(self) -> int:
        """Length of the file in bytes, now."""
        return os.fstat(self.descriptor).st_size

    @property
    def mtime_ns(self) -> int:
        """Time of the last write, in nanoseconds."""
        return max(0, os.fstat(self.descriptor).st_mtime_ns)

    def is_quiet(self) -> bool:
        """Return whether nothing was written for QUIET_SECONDS."""
        return not 0 <= time.time() - self.mtime_ns / 1e9 < QUIET_SECONDS

    def continues(self, position: int, mark: Mark) -> bool:
        """Return whether the file still has the bytes before ``position`` that ``mark`` saw."""
        return self.size >= position and (
            mark.length == 0
            or (mark.length <= position and self._digest(position, mark.length) == mark.digest)
        )

    def chunk(
        self, position: int, max_bytes: int, *, is_over: bool = False, known_ns: int | None = None
    ) -> FileChunk:
        """Return what the file has from ``position`` on, as an answer without ``reply_to``.

        ``is_over``: another file goes on where this one ends, so a character that is incomplete at
        the end stays incomplete, and there is more. ``known_ns`` goes into the mark; None: the time
        of the last write.
        """
        size = self.size
        start, raw = self._written(position, max_bytes, size) if max_bytes else (position, b"")
        data = raw if is_over and start + len(raw) >= size else raw[: _complete_length(raw)]
        end = start + len(data)
        # With no byte asked for, the question is only whether there are any.
        has_left = start + len(raw) < size and (
            not max_bytes or (bool(raw) and self.has_left(end, is_over=is_over))
        )
        length = min(end, MARK_BYTES)
        known_ns = self.mtime_ns if known_ns is None else known_ns
        return FileChunk(
            reply_to="",
            identity=self.identity,
            position=start,
            data=data,
            mark=str(Mark(length, self._digest(end, length), known_ns)),
            has_more=has_left or is_over,
            gap="hole" if start > position else None,
            gap_bytes=start - position if start > position else None,
        )

    def has_left(self, position: int, *, is_over: bool) -> bool:
        """Return whether a read from ``position`` on would return something now."""
        start, raw = self._written(position, MAX_FILE_CHUNK_BYTES, self.size)
        return start > position or bool(raw if is_over else _complete_length(raw))

    def _digest(self, position: int, length: int) -> str:
        data = os.pread(self.descriptor, length, position - length)
        return blake2b(data, digest_size=16).hexdigest()

    def _written(self, position: int, max_bytes: int, size: int) -> tuple[int, bytes]:
        """Return where data begins from ``position`` on, behind a hole if any, and the data."""
        start = self._skip_hole(position, size)
        if start is None:
            return position, b""
        raw = os.pread(self.descriptor, min(max_bytes, MAX_FILE_CHUNK_BYTES), start)
        return start, raw[: self._written_length(start, raw, size)]

    def _skip_hole(self, position: int, size: int) -> int | None:
        """Return where there is data again; None: nowhere yet.

        Space that is allocated in advance is a hole until it is written.
        """
        if _SEEK_DATA is None or size - position < LEAST_HOLE_BYTES:
            return position
        try:
            start = os.lseek(self.descriptor, position, _SEEK_DATA)
        except OSError as error:
            if error.errno not in _NO_HOLES:
                raise
            return None if error.errno == errno.ENXIO else position
        return start if start - position >= LEAST_HOLE_BYTES else position

    def _written_length(self, start: int, raw: bytes, size: int) -> int:
        """Return how many bytes of ``raw`` are written.

        Zeros before a hole that reaches to the end of the file are space for what is to come.
        """
        if _SEEK_DATA is None or size - start < LEAST_HOLE_BYTES or not raw.endswith(b"\0"):
            return len(raw)
        try:
            hole = os.lseek(self.descriptor, start, os.SEEK_HOLE)
            if hole - start < len(raw) and size - hole >= LEAST_HOLE_BYTES:
                os.lseek(self.descriptor, hole, _SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return len(raw[: hole - start].rstrip(b"\0"))
            if error.errno not in _NO_HOLES:
                raise
        return len(raw)


def _complete_length(data: bytes) -> int:
    """Return how many bytes are whole characters of UTF-8, or never will be."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for back in range(1, min(4, len(data) + 1)):
        if data[-back] & 0xC0 != 0x80:
            decoder.decode(data[-back:])
            return len(data) - len(decoder.getstate()[0])
    return len(data)
