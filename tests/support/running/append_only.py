"""Control for tests over the append-only tables: empty them, or let no row in."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from django.db import OperationalError, connection

TABLES = ("projects_auditevent", "projects_auditmark")
_DEADLOCKS = 5
_DEADLOCK_DETECTED = "40P01"
_NAMES = ", ".join(f"'{table}'" for table in TABLES)
_TRIGGERS = {
    "sqlite": "SELECT name, sql FROM sqlite_master"
    f" WHERE type = 'trigger' AND tbl_name IN ({_NAMES})",
    "postgresql": "SELECT tgname FROM pg_trigger WHERE tgenabled <> 'D' AND NOT tgisinternal"
    f" AND tgrelid::regclass::text IN ({_NAMES})",
}
# What the migrations make: two for each table, and on SQLite one against REPLACE.
_ALL = {"sqlite": 6, "postgresql": 4}


class _Deadlock(OperationalError):
    """PostgreSQL chose the flush as the victim of a deadlock."""


@contextmanager
def triggers_lifted() -> Iterator[None]:
    """The audit tables can be changed in the block, as by the owner of the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for table in TABLES:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            restore = [f"ALTER TABLE {table} ENABLE TRIGGER USER" for table in TABLES]
        else:
            cursor.execute(_TRIGGERS["sqlite"])
            found = cursor.fetchall()
            for name, _ in found:
                cursor.execute(f"DROP TRIGGER {name}")
            restore = [statement for _, statement in found]
        try:
            yield
        finally:
            for statement in restore:
                cursor.execute(statement)


def triggers() -> frozenset[str]:
    """The names of the triggers that refuse changes of the audit tables now."""
    with connection.cursor() as cursor:
        cursor.execute(_TRIGGERS[connection.vendor])
        return frozenset(row[0] for row in cursor.fetchall())


@contextmanager
def no_audit_rows() -> Iterator[None]:
    """Let the SQLite database take no row of the audit log in the block."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TRIGGER refuse_rows BEFORE INSERT ON projects_auditevent BEGIN SELECT "
            "RAISE(ABORT, 'no row'); END"
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER refuse_rows")


def let_flush_pass() -> None:
    """Let Django's flush at the end of a transactional test empty the audit tables too.

    A server of the test may still be at its last transaction, which locks the tables in another
    order. PostgreSQL ends one of the two then, and the flush is done again.
    """
    operations = connection.ops
    flush = operations.execute_sql_flush

    def flush_everything(sql_list: Sequence[str]) -> Any:
        # A test that leaves the tables unguarded would break others, which fail far from it.
        assert len(triggers()) == _ALL[connection.vendor], triggers()
        for _ in range(_DEADLOCKS):
            with suppress(_Deadlock):
                return flush_once(sql_list)
        return flush_once(sql_list)

    def flush_once(sql_list: Sequence[str]) -> Any:
        try:
            with triggers_lifted():
                return flush(sql_list)
        except OperationalError as error:
            if getattr(error.__cause__, "sqlstate", None) == _DEADLOCK_DETECTED:
                raise _Deadlock(*error.args) from error
            raise

    operations.execute_sql_flush = flush_everything
