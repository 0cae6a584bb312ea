"""Locks of PostgreSQL, seen from outside of their transactions."""

from django.db import connection


def waits_for_a_lock() -> bool:
    """True if a transaction waits for a lock. Works on PostgreSQL only."""
    # Not of pg_stat_activity, which a transaction sees as it was when it first looked.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])
