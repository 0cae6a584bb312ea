"""Tells "the file is not there" from "nobody could look" after a failed system call.

A process that has no descriptor or no memory left, or whose disk fails, knows nothing about the
file. To take the failure for absence would skip content, lose the end of a program, or let a
forbidden thing pass.
"""

import errno
import os
from pathlib import Path
from typing import Final

_ABSENT: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
_ANSWERS: Final = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.EINVAL,
        # A socket in the place of a file, and a program that is being executed.
        errno.ENXIO,
        errno.ETXTBSY,
    }
)
_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_absent(error: OSError) -> bool:
    """True if the file is not there; any other error leaves that open."""
    return error.errno in _ABSENT


def is_gone(error: OSError) -> bool:
    """True if the process of a file in ``/proc`` has ended; any other error leaves that open."""
    return is_absent(error) or error.errno == errno.ESRCH


def is_shortage(error: OSError) -> bool:
    """True if no descriptor or no memory was left: the error says nothing about the file."""
    return error.errno in _SHORTAGES


def raise_shortage(error: OSError) -> None:
    """Raise ``error`` again if it is a shortage.

    For handlers that otherwise go on as if the file were not there.
    """
    if is_shortage(error):
        raise error


def raise_unknown(error: OSError) -> None:
    """Raise ``error`` again unless it says what the file is: absent, closed to us, or no file.

    For handlers that take those for the same.
    """
    if not (is_absent(error) or error.errno in _ANSWERS):
        raise error


def is_there(path: Path) -> bool:
    """Return whether the name exists; a link that leads nowhere exists, too.

    Raises OSError if that cannot be told.
    """
    try:
        os.lstat(path)
    except OSError as error:
        if is_absent(error):
            return False
        raise
    return True
