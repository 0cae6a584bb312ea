"""The meaning of database errors: for the storage, for the transaction and for the connection.

SQLite keeps what it found when it opened its files. A connection that was opened while the files
could not be written is read-only for good. A connection whose file was replaced reads the old file.
PostgreSQL keeps a connection to a server that has become a standby.
"""

import errno
import os
import sqlite3
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connections,
)

_PRIMARY: Final = 0xFF
_NOT_DONE: Final = frozenset(
    {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
)
_BROKEN: Final = frozenset(
    {
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FULL,
    }
)
# Serialization failure, deadlock, lock not available.
_LOCK_STATES: Final = ("40001", "40P01", "55P03")
# A read-only transaction, too, and every "insufficient resources".
_ROLLED_BACK_STATES: Final = (*_LOCK_STATES, "25006")
_RESOURCE_CLASS: Final = "53"
# Read-only transaction, I/O error, damaged data: a server that has become a standby, or whose disk
# fails.
_BROKEN_STATES: Final = ("25006", "58030", "XX001", "XX002")

# No descriptors are left (in this process, in the system), or no memory for the kernel's part.
_SHORT_OF: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})

Error = DatabaseError | InterfaceError


def is_fault(error: Error) -> bool:
    """Returns True if the storage failed, and the statement is not to blame."""
    return isinstance(error, OperationalError | InterfaceError) or is_broken(error)


def is_broken(error: Error) -> bool:
    """Returns True if the connection, and all that were opened with it, should be replaced."""
    return _code(error) in _BROKEN or _state(error) in _BROKEN_STATES


def is_rolled_back(error: Error) -> bool:
    """Returns True if nothing was done for sure.

    SQLite has these codes only for statements it did not do; PostgreSQL has codes for it.
    """
    state = _state(error)
    return (
        _code(error) in _NOT_DONE
        or state in _ROLLED_BACK_STATES
        or state.startswith(_RESOURCE_CLASS)
    )


def is_lock_lost(error: Error) -> bool:
    """Returns True if PostgreSQL rolled back because others had locks; trying again may help."""
    return _state(error) in _LOCK_STATES


def is_shortage(error: BaseException) -> bool:
    """Returns True if the machine or this process was short of something that a connection needs.

    psycopg waits for its sockets with descriptors of its own, and lets the OSError of the system
    through. What cleans up behind that error may raise another one, whose context is the OSError.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _SHORT_OF:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _code(error: Error) -> int | None:
    code = getattr(error.__cause__, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY


def _state(error: Error) -> str:
    return getattr(error.__cause__, "sqlstate", None) or ""


def database_path() -> Path | None:
    """The path of the database file; None for a database without one."""
    # The stubs know no method of SQLite's alone.
    here: Any = connections[DEFAULT_DB_ALIAS]
    if here.vendor != "sqlite" or here.is_in_memory_db():
        return None
    return _path(str(here.settings_dict["NAME"]))


# Each hop asks for the path, and to make one takes as long as a statement.
_path = lru_cache(maxsize=8)(Path)


def database_file() -> tuple[int, int] | None:
    """The device and the inode of the database file; None without a file.

    Raises OperationalError if there is no such file: opening it would make an empty one in its
    place.
    """
    path = database_path()
    if path is None:
        return None
    try:
        status = path.stat()
    except FileNotFoundError as error:
        raise OperationalError(f"there is no database file {path}") from error
    except OSError as error:
        raise OperationalError(
            f"the database file cannot be looked at: {os.strerror(error.errno or 0)}"
        ) from error
    return status.st_dev, status.st_ino
