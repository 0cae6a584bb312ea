"""The directories in which every user of a host can exchange what others have put there."""

import os
import stat
from pathlib import Path


def is_open_to_all(status: os.stat_result) -> bool:
    """Tell whether everybody can replace the entries of the directory.

    The sticky bit, which /tmp has, keeps entries for their owners.
    """
    return bool(status.st_mode & stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX


def open_place(directory: Path) -> Path | None:
    """Return the directory, or the first one above, that is open to all; None if none is."""
    for place in (directory, *directory.parents):
        try:
            if is_open_to_all(place.stat()):
                return place
        except OSError:
            # Nobody knows the mode of a directory that is missing or closed.
            continue
    return None
