"""Changes of tables while servers use them."""

import math
import threading
import time
from random import SystemRandom
from typing import Any, Final, Self

from django.db import OperationalError
from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from psycopg import sql
from psycopg.errors import LockNotAvailable

_TOUCHED_FIRST: Final = (
    "projects_apitoken",
    "projects_project",
    "projects_controller",
    "projects_commandsession",
    "projects_controllercommand",
)
"""The order in which a turn takes its tables: who takes them alike meets fewer others half-way."""
_SHORTLY: Final = "SET LOCAL lock_timeout = '100ms'"
"""Far less than PostgreSQL's ``deadlock_timeout``: the locks are given back before it looks."""
_LONGEST_PAUSE_SECONDS: Final = 0.2
_TABLES: Final = """
SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tableowner = current_user
ORDER BY array_position(%s, tablename::text), tablename
"""
_LOCK_MS: Final = "SELECT setting::int FROM pg_settings WHERE name = 'lock_timeout'"
# Building an index takes as long as the table is large. A migration whose client is gone is still
# ended by ``idle_in_transaction_session_timeout``.
_UNHURRIED: Final = "SET LOCAL statement_timeout = 0"


class SchemaEditor(DatabaseSchemaEditor):
    """Takes the locks of all tables before a migration changes one.

    A migration takes its tables one after the other, and holds the first while it waits for the
    next. A server that has the next one, and asks for the first, closes the circle: PostgreSQL then
    ends one of them, and under load that happens to each attempt of a migration of many tables.
    """

    def __enter__(self) -> Self:
        """Begin the transaction, with all locks.

        Raises OperationalError if servers held some for as long as ``lock_timeout``. Whoever calls
        cannot go on with the connection then.
        """
        super().__enter__()
        if self.atomic_migration and not self.collect_sql:
            with self.connection.cursor() as cursor:
                _lock_all(cursor)
                cursor.execute(_UNHURRIED)
        return self


def _lock_all(cursor: Any) -> None:
    cursor.execute(_TABLES, [list(_TOUCHED_FIRST)])
    names = [sql.Identifier(name) for (name,) in cursor.fetchall()]
    if not names:
        return
    lock = sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(sql.SQL(", ").join(names))
    cursor.execute(_LOCK_MS)
    ((longest_ms,),) = cursor.fetchall()
    ends_at = time.monotonic() + longest_ms / 1000 if longest_ms else math.inf
    while (error := _try(cursor, lock)) is not None:
        if ends_at < time.monotonic():
            raise error
        # Servers go on meanwhile.
        threading.Event().wait(SystemRandom().uniform(0, _LONGEST_PAUSE_SECONDS))


def _try(cursor: Any, lock: sql.Composed) -> OperationalError | None:
    cursor.execute("SAVEPOINT before_locks")
    cursor.execute(_SHORTLY)
    try:
        cursor.execute(lock)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        cursor.execute("ROLLBACK TO SAVEPOINT before_locks")
        return error
    cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
    return None
