"""SQLite's log is moved into the database beside the calls, not in one of them.

A commit that finds the log long moves all of it, and waits for the disk twice: a turn would take 30 to 100 ms longer now and then.
Here a thread for long work does it every second; readers and writers go on meanwhile. PostgreSQL needs nothing of this.
"""

import asyncio
import logging
from typing import Final

from django.db import connection

from projects.database import at_length
from projects.errors import StorageUnavailable

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 1.0

_task: asyncio.Task[None] | None = None


def ensure_running() -> None:
    """Starts the task on the running loop unless it runs there already or the database is not SQLite."""
    global _task  # noqa: PLW0603 - one per process, and a task needs a reference that lasts
    if _task is not None and not _task.done() and _task.get_loop() is asyncio.get_running_loop():
        return
    if connection.vendor == "sqlite":
        _task = asyncio.create_task(_run(), name="checkpoints")


async def _run() -> None:
    while True:
        try:
            await at_length(checkpoint)
        except StorageUnavailable:
            logger.error("the database is away: its log was not moved")
        except Exception:
            logger.exception("the database's log could not be moved")
        await asyncio.sleep(INTERVAL_SECONDS)


def checkpoint() -> int:
    """Moves what nobody reads any more; how many pages of the log are left to be moved."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
        _, in_log, moved = cursor.fetchone()
    return int(in_log - moved)
