"""The rows that a flush leaves: content types, permissions and groups of an empty database.

Django works them out from all models after each transactional test. Here it does so once. Later
they are put back as the rows that they were, which is a tenth of the work.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.core.management.commands import flush
from django.db import connection, transaction


def keep_first_rows() -> None:
    """Let a flush put back the rows that the first flush of this process found itself left with."""
    emit = flush.emit_post_migrate_signal
    kept: list[tuple[str, Sequence[tuple[Any, ...]]]] = []

    def put_back(verbosity: int, interactive: bool, db: str) -> None:
        if not kept:
            emit(verbosity, interactive, db)
            kept.extend(_all_rows())
            return
        # The tables refer to each other, and constraints are checked at the end.
        with transaction.atomic(), connection.cursor() as cursor:
            for statement, rows in kept:
                cursor.executemany(statement, rows)
        ContentType.objects.clear_cache()

    flush.emit_post_migrate_signal = put_back


def _all_rows() -> list[tuple[str, Sequence[tuple[Any, ...]]]]:
    """A statement and its rows for each table that is not empty."""
    found = []
    quote = connection.ops.quote_name
    with connection.cursor() as cursor:
        for table in connection.introspection.django_table_names(
            only_existing=True, include_views=False
        ):
            cursor.execute(f"SELECT * FROM {quote(table)}")
            if rows := cursor.fetchall():
                places = ", ".join(["%s"] * len(rows[0]))
                found.append((f"INSERT INTO {quote(table)} VALUES ({places})", rows))
    return found
