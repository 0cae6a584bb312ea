"""Django's SQLite, which makes a database only where one is wanted.

SQLite makes an empty file wherever a file is asked for that is not there. Whoever takes a database
away for a moment, to put another in its place, would find that the log of an empty one belongs to
what was put there.

Django finds this class by the name of its package and of this module.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from django.db.backends.sqlite3 import base

_is_wanted: ContextVar[bool] = ContextVar("_is_wanted", default=False)


@contextmanager
def making_database() -> Iterator[None]:
    """Inside, a database file that is not there is made."""
    token = _is_wanted.set(True)
    try:
        yield
    finally:
        _is_wanted.reset(token)


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to a database that is there. Raises OperationalError if there is none."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open the database file, or refuse to make one."""
        path = Path(conn_params["database"])
        try:
            is_there = _is_wanted.get() or self.is_in_memory_db() or path.exists()
        except OSError as error:
            said = f"the database file {path} cannot be reached: {error.strerror}"
            raise sqlite3.OperationalError(said) from None
        if not is_there:
            raise sqlite3.OperationalError(f"there is no database file {path}")
        return super().get_new_connection(conn_params)
