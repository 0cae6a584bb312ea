"""Changes of tables while servers use them."""

import math
import threading
import time
from random import SystemRandom
from typing import Any, Final, Self

from django.db import OperationalError
from django.db.backends.postgresql.schema import DatabaseSchemaEditor
from psycopg import sql
from psycopg.errors import LockNotAvailable, QueryCanceled

_TOUCHED_FIRST: Final = (
    "projects_apitoken",
    "projects_project",
    "projects_controller",
    "projects_commandsession",
    "projects_controllercommand",
)
"""The order in which a turn takes its tables: who takes them alike meets fewer others half-way."""
_FIRST_WAIT_MS: Final = 100
_OF_DEADLOCK_TIMEOUT: Final = 0.8
"""The longest wait, as a part of ``deadlock_timeout``: the locks are given back before PostgreSQL
looks for a circle, and ends a transaction of a server."""
_SHORTLY: Final = "SET LOCAL lock_timeout = {ms}; SET LOCAL statement_timeout = {ms}"
_TABLES: Final = """
SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tableowner = current_user
ORDER BY array_position(%s, tablename::text), tablename
"""
_TIMEOUTS_MS: Final = """
SELECT setting::int FROM pg_settings WHERE name IN ('deadlock_timeout', 'lock_timeout')
ORDER BY name
"""
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
    cursor.execute(_TIMEOUTS_MS)
    (deadlock_ms,), (lock_ms,) = cursor.fetchall()
    ends_at = time.monotonic() + lock_ms / 1000 if lock_ms else math.inf
    wait_ms = _FIRST_WAIT_MS
    while not _try(cursor, lock, wait_ms):
        if ends_at < time.monotonic():
            raise OperationalError("servers held locks of tables") from LockNotAvailable()
        # Servers go on meanwhile, for about as long as they were held up.
        threading.Event().wait(wait_ms / 1000 * SystemRandom().uniform(0.5, 1.5))
        # On a machine with much to do, each transaction of a server takes long.
        wait_ms = min(2 * wait_ms, max(_FIRST_WAIT_MS, int(deadlock_ms * _OF_DEADLOCK_TIMEOUT)))


def _try(cursor: Any, lock: sql.Composed, wait_ms: int) -> bool:
    """Returns True if the transaction has all locks now, and False if it has none of them."""
    cursor.execute("SAVEPOINT before_locks")
    cursor.execute(_SHORTLY.format(ms=wait_ms))
    try:
        cursor.execute(lock)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable | QueryCanceled):
            raise
        cursor.execute("ROLLBACK TO SAVEPOINT before_locks")
        return False
    cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
    return True
