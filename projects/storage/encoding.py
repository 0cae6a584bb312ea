"""Refuses databases whose encoding cannot store any text: output and commands are any text."""

from pathlib import Path
from typing import Any, Final

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import NO_DB_ALIAS, BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.utils import DatabaseError, OperationalError

NEEDED: Final = "UTF8"
HINT: Final = (
    "PostgreSQL: CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8'. SQLite: a new file, "
    "which is UTF-8 unless it is made otherwise."
)


def refuse_other_encodings() -> None:
    """From now on a connection to such a database fails while it is opened."""
    connection_created.connect(_on_connection, dispatch_uid="encoding of the database")


def problem(connection: BaseDatabaseWrapper) -> str:
    """A sentence about a database with the wrong encoding; empty if the encoding is right."""
    found = encoding(connection)
    return (
        ""
        if found.replace("-", "").upper() == NEEDED
        else f"The database's encoding is {found}, not UTF-8: not every text can be stored."
    )


def encoding(connection: BaseDatabaseWrapper) -> str:
    """The encoding as the database names it.

    PostgreSQL names it when a connection is made; SQLite is asked.
    """
    if connection.vendor == "postgresql":
        return str(connection.connection.info.parameter_status("server_encoding"))
    return str(connection.connection.execute("PRAGMA encoding").fetchone()[0])


def problem_at_start() -> str:
    """The ``problem`` of the server's own database, if it exists and answers.

    A database that is away or not made yet is checked when a connection is made.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.connection is not None:
        return problem(connection)
    try:
        if connection.vendor == "sqlite" and not Path(connection.settings_dict["NAME"]).is_file():
            return ""
        connection.ensure_connection()
    except WrongEncodingError as error:
        return error.problem
    except (DatabaseError, OSError):
        return ""
    connection.close()
    return ""


class WrongEncodingError(OperationalError):
    """A connection was opened to a database that cannot store any text."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{problem} {HINT}")


def _on_connection(connection: BaseDatabaseWrapper, **_kwargs: Any) -> None:
    if connection.alias != NO_DB_ALIAS and (wrong := problem(connection)):
        connection.close()
        raise WrongEncodingError(wrong)
