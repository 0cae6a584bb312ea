"""SQLite's log is moved into the database beside the calls, not in one of them.

A commit that finds the log long moves all of it, and waits for the disk twice: a turn would take 30 to 100 ms longer now and then.
Here a thread for long work does it every second; readers and writers go on meanwhile. PostgreSQL needs nothing of this.
"""

from typing import Final

from django.db import connection

from projects.database import at_length
from projects.process_task import Rounds

INTERVAL_SECONDS: Final = 1.0


def ensure_running() -> None:
    """Starts the task on the running loop unless it runs there already or the database is not SQLite."""
    if connection.vendor == "sqlite":
        _ROUNDS.ensure_running()


def checkpoint() -> int:
    """Moves what nobody reads any more; how many pages of the log are left to be moved."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        _, in_log, moved = cursor.fetchone()
    return int(in_log - moved)


_ROUNDS: Final = Rounds("checkpoints", lambda: at_length(checkpoint), lambda: INTERVAL_SECONDS)
