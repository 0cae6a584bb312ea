"""SQLite: copied by its backup API, put back by renaming a finished file over the old one."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from django.db import DatabaseError, connection

from backup.directory import flush, fresh_file
from backup.errors import SERVED, BackupError
from projects.storage import unfinished
from projects.storage.sqlite.server_lock import DatabaseServed, lock

_LOGS = ("-wal", "-shm", "-journal")
_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
# What a network file system without locks answers.
_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_DAMAGED = (
    "{} cannot be used: {}. If it is damaged, stop every server process, move it away, together "
    "with the files beside it that end with -wal and -shm, and run this again"
)
_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
)


class SqliteStorage:
    """The file that Django's connection names."""

    FILE = "database.sqlite3"

    def __init__(self) -> None:
        self._path = Path(connection.settings_dict["NAME"])

    def copy_out(self, file: Path) -> dict[str, int]:
        """Copy the database in one step, which no writer waits for."""
        try:
            with (
                closing(
                    sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)
                ) as live,
                closing(sqlite3.connect(file)) as copy,
            ):
                live.backup(copy)
                # One file is all of it: the copy has no log beside it.
                copy.execute("PRAGMA journal_mode=DELETE")
                return _checked(copy)
        except sqlite3.Error as error:
            raise BackupError(f"the database cannot be copied: {error}") from None

    def copy_in(self, file: Path, finish: Callable[[], None]) -> None:
        """Finish the copy beside the old file, then rename it over the old one."""
        fresh = self._path.with_name(f"{self._path.name}.restoring")
        connection.close()
        self._remove(fresh)
        try:
            with fresh_file(fresh, like=self._path) as out, file.open("rb") as source:
                shutil.copyfileobj(source, out, 1 << 20)
            connection.settings_dict["NAME"] = fresh
            finish()
            unfinished.begin()
            # Nothing of the new database may be left in a log beside it.
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA journal_mode=DELETE")
            connection.close()
            self._let_go()
            # SQLite would carry out a log that outlived its database on the new one.
            self._remove(self._path, _LOGS)
            flush(fresh)
            fresh.replace(self._path)
            flush(self._path.parent)
        except (OSError, sqlite3.Error, DatabaseError) as error:
            raise BackupError(f"the database cannot be put back: {error}") from None
        finally:
            connection.close()
            connection.settings_dict["NAME"] = self._path
            self._remove(fresh)

    @contextmanager
    def kept_from_servers(self) -> Iterator[None]:
        """Hold the lock that a server takes."""
        try:
            descriptor = lock(self._path)
        except DatabaseServed:
            raise BackupError(SERVED) from None
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS:
                raise
            # A network file system without locks has none that keep two servers apart either.
            yield
            return
        try:
            yield
        finally:
            os.close(descriptor)

    def users(self) -> int:
        """1 if another process has the database open, else 0."""
        connection.close()
        try:
            self._let_go()
        except sqlite3.Error as error:
            if error.sqlite_errorcode in _IN_USE:
                return 1
            raise BackupError(_DAMAGED.format(self._path, error)) from None
        return 0

    def _let_go(self) -> None:
        """Write the log into the file and remove it. Raises if anybody else has the file open."""
        if self._path.is_file():
            with closing(sqlite3.connect(self._path, timeout=0, isolation_level=None)) as old:
                old.execute("PRAGMA journal_mode=DELETE")

    @staticmethod
    def _remove(file: Path, suffixes: Iterable[str] = ("", *_LOGS)) -> None:
        for suffix in suffixes:
            file.with_name(file.name + suffix).unlink(missing_ok=True)


def _checked(copy: sqlite3.Connection) -> dict[str, int]:
    found = copy.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise BackupError(f"the copy of the database is damaged: {found}")
    tables = sorted(name for (name,) in copy.execute(_TABLES))
    return {
        name: copy.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0]  # noqa: S608 # nosec B608
        for name in tables
    }
