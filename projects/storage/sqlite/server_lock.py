"""The lock of a server on SQLite, which has to be one process.

Two such processes would both send each message to people, and neither would hear what the other one
stores. A restore holds the lock too: no server starts on a database that is being replaced. The
lock is the process's: the kernel takes it back when the process dies.
"""

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

from django.core.exceptions import ImproperlyConfigured
from django.db import connection

SUFFIX: Final = ".server"
_kept: Final[list[int]] = []
"""The descriptor of the lock, open for as long as the process lives."""
_REFUSED: Final = frozenset({errno.EACCES, errno.EPERM, errno.ELOOP})


class DatabaseServed(Exception):
    """Another process holds the lock."""


def take_server_lock() -> None:
    """Raise ImproperlyConfigured if another process serves this SQLite database."""
    if connection.vendor != "sqlite":
        return
    database = Path(connection.settings_dict["NAME"])
    try:
        _kept.append(lock(database))
    except DatabaseServed:
        raise ImproperlyConfigured(
            f"the server does not start: another server process serves {database}, or a restore "
            "replaces it. Stop it, or set DATABASE_URL and REDIS_URL: on SQLite a server is one "
            "process"
        ) from None
    except OSError as error:
        # A directory where nothing can be written fails by itself, and some network file systems
        # have no such locks.
        if error.errno in _REFUSED:
            raise ImproperlyConfigured(
                f"the server does not start: {error.filename} cannot be opened: {error.strerror}. "
                "It has to be a file of the user that the server runs as"
            ) from None


def lock(database: Path) -> int:
    """Take the lock of the server of ``database``. Returns the descriptor that holds it.

    Raises DatabaseServed, or OSError if there can be no lock.
    """
    path = database.with_name(database.name + SUFFIX)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.geteuid() == 0:
            # What root makes, the server's user opens.
            owner = (database if database.exists() else database.parent).stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
    except BlockingIOError:
        os.close(descriptor)
        raise DatabaseServed from None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
