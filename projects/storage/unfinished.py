"""A restore that was begun and not finished: no server may serve such a database."""

from pathlib import Path
from typing import Final

from django.db import connection
from django.db.utils import DatabaseError

TABLE: Final = "holdline_unfinished_restore"
"""A table that is there from the moment a restore replaces the data until the restore is over."""


def begin() -> None:
    """Mark the database of Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE IF NOT EXISTS {TABLE} (since text)")


def end() -> None:
    """Let servers use the database."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE {TABLE}")


def problem() -> str:
    """A sentence about a restore that is not finished; empty if there is none.

    A database that is away or out of reach is no problem here. No file is made here.
    """
    try:
        if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).is_file():
            return ""
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
    except (DatabaseError, OSError):
        return ""
    return "A restore of the database has not been finished." if TABLE in tables else ""
