"""A restore that was begun and not finished: no server may serve such a database."""

from typing import Final

from django.db import connection
from django.db.utils import DatabaseError

TABLE: Final = "holdline_unfinished_restore"
"""A table that is there from the moment a restore replaces the data until the restore is over."""


def problem() -> str:
    """A sentence about a restore that is not finished; empty if there is none.

    A database that is away is no problem here. A file of SQLite is replaced when it is finished.
    """
    if connection.vendor != "postgresql":
        return ""
    try:
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
    except DatabaseError:
        return ""
    return "A restore of the database has not been finished." if TABLE in tables else ""
