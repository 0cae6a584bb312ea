"""The files of one log: the one that has its name, and those that rotation renamed, beside it.

A name may be missed by a process that lists the directory while the file is renamed. So a file that
is not found is looked for again, until nothing was renamed during the look.
"""

import os
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final

from controller_client.logs.log_file import LogFile
from controller_client.logs.paths import FileRefused, Place, identity_of, is_plain

# An old file that is never quiet is left at its end all the same once nothing has been renamed for
# so long: the next file has lines, too.
SETTLED_SECONDS: Final = 2.0
MAX_ENTRIES: Final = 10_000
# The modification time of a directory is no finer than a tick of the kernel's clock.
TICK_SECONDS: Final = 0.02
MAX_LISTINGS: Final = 6
_COMPRESSED: Final = (".gz", ".xz", ".bz2", ".zst", ".lz4", ".Z", ".zip")


class LogSeries:
    """The files that have, or had, the name of ``place``. ``held`` closes what is opened.

    ``current`` is the file that has the name now. If it is None, ``problem`` says why.
    """

    def __init__(self, place: Place, held: ExitStack) -> None:
        self._place = place
        self._held = held
        self.problem = FileRefused("FILE_NOT_FOUND")
        self.current: LogFile | None = None
        try:
            self.current = self._open(place.name)
        except FileRefused as refused:
            if refused.failure.code in {"FILE_READ_ERROR", "PATH_NOT_ALLOWED"}:
                raise
            self.problem = refused

    def try_open(self, name: str) -> LogFile | None:
        """Open a file of the directory; None if it is not there, or refused.

        Raises FileRefused if nobody could look: then the place stays where it is, and the next look
        finds out.
        """
        try:
            return self._open(name)
        except FileRefused as refused:
            if refused.failure.code == "FILE_READ_ERROR":
                raise
            return None

    def is_settled(self) -> bool:
        """Return whether nothing was renamed in the directory for SETTLED_SECONDS."""
        return not 0 <= time.time() - os.fstat(self._place.directory).st_mtime < SETTLED_SECONDS

    def looks(self) -> Iterator[None]:
        """Yield once for each look that the caller has to take at the directory.

        After the last one, a file that was not found is not there, whatever was renamed meanwhile.
        """
        for _ in range(MAX_LISTINGS):
            before = os.fstat(self._place.directory).st_mtime_ns
            yield
            is_still = before == os.fstat(self._place.directory).st_mtime_ns
            if is_still and not 0 <= time.time() - before / 1e9 < TICK_SECONDS:
                return
            time.sleep(TICK_SECONDS)  # noqa: TID251 - in a thread for looks; there is no event for a clock's tick

    def renamed(self, identity: str) -> LogFile | None:
        """Return the file of that identity, whatever its name is now."""
        for _ in self.looks():
            name = self.names_by_inode().get(inode_of(identity))
            log = self.try_open(name) if name is not None else None
            if log is not None and log.identity == identity:
                return log
        return None

    def siblings(self) -> list[tuple[int, str]]:
        """Return (time of the last write, name) of files that rotation named, oldest first."""
        pattern = _rotated_name(self._place.name)
        found = []
        for entry in self._entries():
            if pattern.fullmatch(entry.name) and not entry.name.endswith(_COMPRESSED):
                with suppress(FileNotFoundError):
                    status = os.stat(
                        entry.name, dir_fd=self._place.directory, follow_symlinks=False
                    )
                    if is_plain(status):
                        found.append((status.st_mtime_ns, entry.name))
        return sorted(found)

    def names_by_inode(self) -> dict[int, str]:
        """Return the name of each file of the directory by its inode."""
        return {entry.inode(): entry.name for entry in self._entries()}

    def _open(self, name: str) -> LogFile:
        descriptor = self._place.open(name)
        self._held.callback(os.close, descriptor)
        return LogFile(descriptor, identity_of(os.fstat(descriptor)))

    def _entries(self) -> Iterator["os.DirEntry[str]"]:
        try:
            directory = os.open(
                ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._place.directory
            )
        except PermissionError:
            # A directory may be entered without being readable: then only the name itself is known.
            return
        try:
            with os.scandir(directory) as entries:
                for count, entry in enumerate(entries):
                    if count >= MAX_ENTRIES:
                        return
                    yield entry
        finally:
            os.close(directory)


def inode_of(identity: str) -> int:
    """Return the inode in an identity of ``identity_of``; -1 for a text that is no identity."""
    inode = identity.rpartition(":")[2]
    return int(inode[:20]) if inode.isdecimal() else -1


def series_of(name: str) -> re.Pattern[str]:
    """Return the pattern of the name itself and of the names that rotation gives."""
    return re.compile(f"{re.escape(name)}|{_rotated_name(name).pattern}")


def _rotated_name(name: str) -> re.Pattern[str]:
    """Return the pattern of rotated names.

    Those of ``app.log`` are ``app.log.1``, ``app.log-20261120``, ``app-20261120.log`` and
    ``app.log.old``, for example.
    """
    stem, dot, suffix = name.rpartition(".")
    after = rf"{re.escape(name)}[._-](?:\d[\w.:-]*|old|bak|prev)"
    if not stem:
        return re.compile(after)
    return re.compile(rf"{after}|{re.escape(stem)}[._-]\d[\w.:-]*{re.escape(dot + suffix)}")
