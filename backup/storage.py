"""The database as a file, and a file as the database: SQLite and PostgreSQL alike."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from django.db import connection

from backup import postgresql, sqlite


class Storage(Protocol):
    """A kind of database: copied out while it serves, put back while it does not."""

    FILE: str
    """The name of the copy in a backup."""

    def copy_out(self, file: Path) -> dict[str, int]:
        """Copy the database, at one moment, into the new file, and check that it can be read.

        Returns the number of rows of each table at that moment. Raises BackupError.
        """

    def copy_in(self, file: Path, finish: Callable[[], None]) -> None:
        """Replace the database by the copy, and call ``finish``, which works on its connection.

        The database then refuses to be served until ``unfinished.end``. Raises BackupError; the
        database is then as it was, or refuses to be served.
        """

    def kept_from_servers(self) -> AbstractContextManager[None]:
        """Inside, no server starts on the database. Raises BackupError if one runs."""

    def users(self) -> int:
        """The number of other connections to the database; a served one has at least one.

        Raises BackupError if that cannot be known.
        """


_KINDS: Final[dict[str, Callable[[], Storage]]] = {
    "sqlite": sqlite.SqliteStorage,
    "postgresql": postgresql.PostgresqlStorage,
}


def storage() -> Storage:
    """The storage of this server's database."""
    return _KINDS[connection.vendor]()
