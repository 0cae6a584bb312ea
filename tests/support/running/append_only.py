"""Permission for tests to empty tables that the database itself keeps append-only."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection

TABLES = ("projects_auditevent", "projects_auditmark")


@contextmanager
def triggers_lifted() -> Iterator[None]:
    """The audit tables can be changed in the block, as by the owner of the database."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for table in TABLES:
                cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            yield
            for table in TABLES:
                cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
            return
        cursor.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (%s, %s)",
            TABLES,
        )
        triggers = cursor.fetchall()
        for name, _ in triggers:
            cursor.execute(f"DROP TRIGGER {name}")
        yield
        for _, statement in triggers:
            cursor.execute(statement)


def let_flush_pass() -> None:
    """Let Django's flush at the end of a transactional test empty the audit tables too."""
    operations = connection.ops
    flush = operations.execute_sql_flush

    def flush_everything(sql_list: Sequence[str]) -> Any:
        with triggers_lifted():
            return flush(sql_list)

    operations.execute_sql_flush = flush_everything
