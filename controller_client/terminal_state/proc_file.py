"""Small files of /proc, kept open between looks: reading one again costs a microsecond, opening it four."""

import os
from typing import ClassVar, Final

MAX_KEPT_OPEN: Final = 128
READ_ONLY: Final = os.O_RDONLY | os.O_CLOEXEC


def read_once(path: str, size_bytes: int = 4096) -> bytes:
    """The first ``size_bytes`` of a file; OSError when it is gone or not ours to read."""
    fd = os.open(path, READ_ONLY)
    try:
        return os.read(fd, size_bytes)
    finally:
        os.close(fd)


# A look makes dozens of these calls within 50 microseconds: pathlib would double that.
def status_of(path: str) -> os.stat_result:
    """The file a path, or a descriptor's link, leads to; OSError when it is gone or not ours to see."""
    return os.stat(path)  # noqa: PTH116


def link_of(path: str) -> str:
    """Where a link points, ``""`` when it is gone or not ours to see."""
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def numbers_in(path: str) -> list[int]:
    """The entries of a directory that are numbers: pids, threads, descriptors."""
    return [int(name) for name in os.listdir(path) if name.isdigit()]  # noqa: PTH208


class ProcFile:
    """One file of one task. The descriptor is bound to that task, so a recycled pid can never answer for it."""

    __slots__ = ("_fd", "_path")
    open_files: ClassVar[int] = 0

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def read(self, size_bytes: int = 4096) -> bytes:
        """The content now; OSError when the task is gone or may not be inspected."""
        if self._fd < 0 and not self._keep_open():
            return read_once(self._path, size_bytes)
        return os.pread(self._fd, size_bytes, 0)

    def status(self) -> os.stat_result:
        """What ``stat`` says of it now; OSError when the task is gone."""
        if self._fd < 0 and not self._keep_open():
            return status_of(self._path)
        return os.fstat(self._fd)

    def _keep_open(self) -> bool:
        if ProcFile.open_files >= MAX_KEPT_OPEN:
            return False
        self._fd = os.open(self._path, READ_ONLY)
        ProcFile.open_files += 1
        return True

    def close(self) -> None:
        """Let go of the descriptor; a later read opens the file again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            ProcFile.open_files -= 1
