"""Small files of /proc, kept open between looks.

Reading an open file again costs a microsecond, opening it costs four.
"""

import os
import struct
from typing import ClassVar, Final

from controller_client.system.absence import raise_shortage

MAX_KEPT_OPEN: Final = 128
SURELY_WHOLE_BYTES: Final = 2048
"""A list that the kernel cut is longer: only the entry that did not fit is missing in its page."""
READ_ONLY: Final = os.O_RDONLY | os.O_CLOEXEC
VANISHED: Final = (OSError, ValueError, IndexError, struct.error, OverflowError)
"""The errors that a look can raise while the processes it reads about come and go."""


def read_once(path: str, size_bytes: int = 4096) -> bytes:
    """Return the first ``size_bytes`` of a file; OSError when it is gone or not ours to read."""
    fd = os.open(path, READ_ONLY)
    try:
        return os.read(fd, size_bytes)
    finally:
        os.close(fd)


# A look makes dozens of these calls within 50 microseconds: pathlib would double that.
def status_of(path: str) -> os.stat_result:
    """Return the status of the file that a path or a descriptor's link leads to.

    Raises OSError when the file is gone or not ours to see.
    """
    return os.stat(path)


def link_of(path: str) -> str:
    """Return the target of a link, ``""`` when the link is gone or not ours to see.

    Raises OSError when there is no memory to look with.
    """
    try:
        return os.readlink(path)
    except OSError as error:
        raise_shortage(error)
        return ""


def numbers_in(path: str) -> list[int]:
    """Return the entries of a directory that are numbers: pids, threads, descriptors."""
    return [int(name) for name in os.listdir(path) if name.isdigit()]


class ProcFile:
    """One file of one task, opened at the first read.

    The descriptor is bound to that task. So a new task with the same id can never answer for it.
    """

    __slots__ = ("_fd", "_path")
    open_files: ClassVar[int] = 0

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1

    def read(self, size_bytes: int = 4096) -> bytes:
        """Return the content now; OSError when the task is gone or may not be inspected."""
        if self._fd < 0 and not self._keep_open():
            return read_once(self._path, size_bytes)
        return os.pread(self._fd, size_bytes, 0)

    def read_list(self) -> bytes:
        """Return the whole of a list, of which the kernel gives at most a page at once.

        Raises OSError when the task is gone.
        """
        content = self.read()
        if len(content) < SURELY_WHOLE_BYTES:
            return content
        fd = self._fd if self._fd >= 0 else os.open(self._path, READ_ONLY)
        try:
            while part := os.pread(fd, 65536, len(content)):
                content += part
        finally:
            if fd != self._fd:
                os.close(fd)
        return content

    def status(self) -> os.stat_result:
        """Return the file's status now; OSError when the task is gone."""
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
        """Close the descriptor; a later read opens the file again."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            ProcFile.open_files -= 1
