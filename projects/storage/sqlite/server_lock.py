"""The lock of a server on SQLite, which has to be one process.

Two such processes would both send each message to people, and neither would hear what the other one
stores. The lock is the process's: the kernel takes it back when the process dies.
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


def take_server_lock() -> None:
    """Raise ImproperlyConfigured if another process serves this SQLite database."""
    if connection.vendor != "sqlite":
        return
    database = Path(connection.settings_dict["NAME"])
    try:
        descriptor = os.open(
            database.with_name(database.name + SUFFIX), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        _kept.append(descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # A directory where nothing can be written fails by itself, and some network file systems
        # have no such locks.
        if error.errno == errno.EWOULDBLOCK:
            raise ImproperlyConfigured(
                f"the server does not start: another server process serves {database}. Stop it, or "
                "set DATABASE_URL and REDIS_URL: on SQLite a server is one process"
            ) from None
