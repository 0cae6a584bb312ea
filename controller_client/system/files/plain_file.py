"""The opening of files in places where programs of a session can put something else.

To open a FIFO waits for a writer, who never comes, and a link may lead to an endless device.
"""

import errno
import os
import stat
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from controller_client.protocol.errors import ProtocolError

_Kind = TypeVar("_Kind")
_NOT_PLAIN: Final = frozenset({errno.ELOOP, errno.ENXIO, errno.EISDIR})

MAX_BYTES: Final = 4 * 1024 * 1024
"""No file that a daemon or a holder keeps for a session is larger."""


class NotPlainFile(OSError):
    """There is something else of this name: a link, a FIFO, a device, or far too much."""


def open_plain(path: Path, *, follows_links: bool = True) -> BufferedReader:
    """Open a plain file for reading, and wait for nobody. Raises NotPlainFile, OSError."""
    flags = os.O_RDONLY if follows_links else os.O_RDONLY | os.O_NOFOLLOW
    return os.fdopen(_open(path, flags), "rb")


def read_plain(path: Path) -> bytes:
    """Return the content of a plain file that is no link. Raises NotPlainFile, OSError."""
    try:
        with open_plain(path, follows_links=False) as file:
            content = file.read(MAX_BYTES + 1)
    except BlockingIOError:
        # Only a lease of another process (F_SETLEASE) makes an open wait.
        raise _not_plain(path) from None
    if len(content) > MAX_BYTES:
        raise _not_plain(path)
    return content


def create_plain(path: Path) -> int:
    """Open a new file for writing, in the place of what an older process or a program left.

    Returns the descriptor. Raises OSError, also if a directory is there.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except FileExistsError:
        path.unlink()
        return os.open(path, flags, 0o600)


def open_private(path: Path | str, flags: int) -> int:
    """Open a plain file that only its user may read, and make it if ``flags`` say so.

    It waits for nobody and follows no link. Returns the descriptor. Raises NotPlainFile, OSError.
    """
    return _open(path, flags | os.O_NOFOLLOW)


def decoded(content: bytes, decode: Callable[[bytes], _Kind | None]) -> _Kind | None:
    """Return what ``decode`` makes of a file; None if it can make nothing of it.

    A program chose the content: bytes that are no text, or brackets without end, are no errors of
    its reader.
    """
    try:
        return decode(content)
    except (ProtocolError, msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _open(path: Path | str, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise _not_plain(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(path)
    return descriptor


def _not_plain(path: Path | str) -> NotPlainFile:
    return NotPlainFile(errno.EINVAL, "this is not a plain file of the expected size", str(path))
