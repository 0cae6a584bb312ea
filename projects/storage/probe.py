"""Checks that the database takes writes: every call needs that, and a read does not show it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.db import OperationalError, connection, transaction

from projects.storage.faults import database_path

_LOCK_MS: Final = 1000
"""How long a probe waits for a lock: it must not hold up the calls that come after it."""
LEAST_ROOM_BYTES: Final = 1024 * 1024
"""SQLite's log has room for a small write when the disk has none for what calls write."""
# It is committed, because a full disk refuses nothing before that.
_WRITE: Final = """
INSERT INTO projects_duty (name, holder, until) VALUES ('readiness', '', CURRENT_TIMESTAMP)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until
"""


def try_write() -> None:
    """Writes a row that nobody reads, in a database thread. Raises what the database raises."""
    path = database_path()
    if path is not None:
        _check_room(path.parent)
    with _impatience(), transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"SET LOCAL lock_timeout = {_LOCK_MS}")
        cursor.execute(_WRITE)


def _check_room(directory: Path) -> None:
    disk = os.statvfs(directory)
    if disk.f_bavail * disk.f_frsize < LEAST_ROOM_BYTES:
        raise OperationalError("the disk of the database is full")


@contextmanager
def _impatience() -> Iterator[None]:
    if connection.vendor != "sqlite":
        yield
        return
    _wait_for_locks(_LOCK_MS)
    try:
        yield
    finally:
        _wait_for_locks(int(connection.settings_dict["OPTIONS"]["timeout"] * 1000))


def _wait_for_locks(milliseconds: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {milliseconds}")
