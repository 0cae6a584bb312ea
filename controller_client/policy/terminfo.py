"""The system's own descriptions of terminals, which no program of a session can replace.

A description may name a program that is run to set the terminal up (``iprog``), and ncurses looks
in the user's home before it looks in the system's directories. With ``TERMINFO`` set to the
system's directory, a program finds the system's description first.
"""

import re
import stat
from pathlib import Path

DIRECTORIES = (
    "/etc/terminfo",
    "/lib/terminfo",
    "/usr/share/terminfo",
    "/usr/lib/terminfo",
    "/usr/share/misc/terminfo",
)
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}", re.ASCII)


def system_directory(
    terminal: str, *, others: tuple[str, ...] = (), directories: tuple[str, ...] = DIRECTORIES
) -> str | None:
    """Find the system's directory that describes ``terminal``; None if there is none.

    A directory that also describes ``others`` is preferred.
    """
    if not _NAME.fullmatch(terminal):
        return None
    found = [directory for directory in directories if _has(directory, terminal)]
    return next(
        (directory for directory in found if all(_has(directory, other) for other in others)),
        next(iter(found), None),
    )


def _has(directory: str, terminal: str) -> bool:
    """Look for an entry that only root, or the owner of the system's directory, can have made."""
    # An entry is filed under its first letter, or under the letter's number on file systems that
    # ignore case.
    for part in (terminal[0], f"{ord(terminal[0]):x}"):
        try:
            status = Path(directory, part, terminal).stat()
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_uid == 0 and not status.st_mode & 0o022:
            return True
    return False
