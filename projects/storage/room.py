"""The room that is left on the disk of the database, and a warning before there is none."""

import logging
import os
from typing import Final

from projects.storage.faults import database_path

logger = logging.getLogger(__name__)

LEAST_BYTES: Final = 1024**3
"""With less than this an operator is warned. A server goes on until the last MiB is used up."""


def free_bytes() -> int | None:
    """The free bytes on the disk of SQLite's file.

    None for a database on another machine, and for a file that cannot be reached.
    """
    path = database_path()
    if path is None:
        return None
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        # The file itself tells what is wrong with its directory.
        return None
    return disk.f_bavail * disk.f_frsize


def problem() -> str:
    """A sentence about a disk that fills; empty if there is room enough."""
    free = free_bytes()
    if free is None or free >= LEAST_BYTES:
        return ""
    return f"The disk of the database has {free // 1024**2} MiB left."


class Watch:
    """Logs once that the disk fills, and once more each time that it fills again."""

    def __init__(self) -> None:
        self._is_short = False

    def look(self) -> None:
        """Looks at the disk once."""
        found = problem()
        if found and not self._is_short:
            logger.warning("%s Calls fail when it is full (docs/howto/operate.md)", found)
        self._is_short = bool(found)
