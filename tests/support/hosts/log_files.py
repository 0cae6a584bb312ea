"""A log as its writers and its rotation leave it, and a caller that reads it look by look."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from controller_client.logs.paths import LogPaths
from controller_client.logs.reader import has_news, look
from controller_client.protocol.messages import FileChunk, FilePlace, ReadFile

_CLOCK = itertools.count(1_700_000_000)


class Reader:
    """A caller that knows nothing but the place that the last answer gave it."""

    def __init__(self, path: Path, max_bytes: int = 65_536) -> None:
        self.ask = ReadFile(path=str(path), max_bytes=max_bytes)
        self._paths = LogPaths([str(path.parent)], str(path.parent / "managed"))

    def look(self, **changes: object) -> FileChunk:
        chunk = look(self._paths, msgspec.structs.replace(self.ask, **changes))
        if chunk.failure is None:
            end = chunk.position + len(chunk.data)
            former = list(self.ask.former)
            if chunk.late:
                read = FilePlace(identity=chunk.identity, mark=chunk.mark, position=end)
                former = [read if place.identity == chunk.identity else place for place in former]
                self.ask = msgspec.structs.replace(self.ask, former=former)
                return chunk
            if chunk.reset == "rotated":
                left = FilePlace(
                    identity=self.ask.identity, mark=self.ask.mark, position=self.ask.position or 0
                )
                former = [
                    place
                    for place in former
                    if place.identity not in {left.identity, chunk.identity}
                ] + [left]
                self.ask = msgspec.structs.replace(self.ask, former=former)
            self.ask = msgspec.structs.replace(
                self.ask, identity=chunk.identity, mark=chunk.mark, position=end
            )
        return chunk

    def all(self) -> Iterator[FileChunk]:
        """Yield answers until there is nothing left."""
        while has_news(chunk := self.look()):
            yield chunk

    def rest(self) -> bytes:
        return b"".join(chunk.data for chunk in self.all())


def write(path: Path, data: bytes) -> None:
    """Append, later than everything that was written before."""
    with path.open("ab") as file:
        file.write(data)
    moment = next(_CLOCK)
    os.utime(path, (moment, moment))


def rotate(path: Path, keep: int = 9) -> None:
    """Rotate as logrotate does: every number goes up by one, and there is a new file."""
    for number in range(keep, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            older.rename(path.with_name(f"{path.name}.{number + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))
    write(path, b"")
