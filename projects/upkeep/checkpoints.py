"""Moves SQLite's write-ahead log into the database, beside the calls and not in one of them.

A commit that finds the log long moves all of it, and waits for the disk twice: now and then a turn
would take 30 to 100 ms longer. Here a thread for long work moves it every second while readers and
writers go on. PostgreSQL needs nothing of this.
"""

from typing import Final

from django.db import connection

from projects.process.task import Rounds
from projects.storage.access import in_upkeep
from projects.storage.columns import is_sqlite

INTERVAL_SECONDS: Final = 1.0


def ensure_running() -> None:
    """Starts the task on the running loop, for SQLite only, unless it runs there already."""
    if is_sqlite():
        _ROUNDS.ensure_running()


def checkpoint() -> int:
    """Moves the pages that nobody reads any more. Returns how many pages of the log are left."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        _, in_log, moved = cursor.fetchone()
    return int(in_log - moved)


_ROUNDS: Final = Rounds("checkpoints", lambda: in_upkeep(checkpoint), lambda: INTERVAL_SECONDS)
