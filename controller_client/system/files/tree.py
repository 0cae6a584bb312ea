"""The removal of a directory that programs made, perhaps thousands of levels deep.

It neither calls itself nor opens paths: what is as deep has no path that a kernel takes.
"""

import os
import secrets
import sys
from contextlib import suppress
from errno import ENOTDIR, ENOTEMPTY
from itertools import islice
from pathlib import Path
from typing import Final

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
MAX_LOOKED_AT: Final = 2_000_000
"""So many entries one removal looks at: a program may go on to make new ones."""
_IS_LINUX: Final = sys.platform.startswith("linux")


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it; a link to one is none.

    Its owner gets into what a program has closed to them. Each directory is moved to the top before
    it is emptied, so few descriptors are open however deep it was. What can be removed is removed.
    A repeat goes on where there are more than MAX_LOOKED_AT entries. Raises OSError for the first
    that cannot.
    """
    try:
        top = _opened(str(path), None)
    except NotADirectoryError:
        raise NotADirectoryError(
            ENOTDIR, "it is no directory itself, but a file or a symbolic link", str(path)
        ) from None
    removal = _Removal()
    try:
        removal.empty(top)
    finally:
        os.close(top)
    try:
        path.rmdir()
    except OSError as error:
        raise removal.problem or error from None


class _Removal:
    """One removal: the first problem, and how many entries may still be looked at."""

    def __init__(self) -> None:
        self.problem: OSError | None = None
        self._left = MAX_LOOKED_AT

    def empty(self, top: int) -> None:
        """Empty a directory as far as that can be done."""
        kept: set[str] = set()
        found = self._remove_files(top)
        while names := [name for name in found if name not in kept]:
            for name in names:
                try:
                    inner = _opened(name, top)
                    try:
                        for below in self._remove_files(inner):
                            self._move_up(below, inner, top)
                    finally:
                        os.close(inner)
                    os.rmdir(name, dir_fd=top)
                except OSError as error:
                    self._failed(error)
                    kept.add(name)
            found = self._listed(top)[1]

    def _remove_files(self, directory: int) -> list[str]:
        """Remove what is no directory, and return the names of the directories."""
        others, below = self._listed(directory)
        for name in others:
            try:
                os.unlink(name, dir_fd=directory)
            except OSError as error:
                self._failed(error)
        return below

    def _move_up(self, name: str, directory: int, top: int) -> None:
        """Give a directory a name of its own in ``top``, or remove it if it is empty."""
        try:
            # Only who may write in a directory can move it elsewhere.
            os.close(_opened(name, directory))
            os.rename(name, secrets.token_hex(16), src_dir_fd=directory, dst_dir_fd=top)
        except OSError as error:
            try:
                os.rmdir(name, dir_fd=directory)
            except OSError:
                self._failed(error)

    def _listed(self, directory: int) -> tuple[list[str], list[str]]:
        """Return names in a directory: of other files, and of directories. Raises OSError."""
        others: list[str] = []
        below: list[str] = []
        # Half of what is left, so that something is left for what is found.
        most = (self._left + 1) // 2
        with os.scandir(directory) as entries:
            for entry in islice(entries, most):
                (below if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        seen = len(others) + len(below)
        self._left -= seen
        if seen == most:
            self._failed(OSError(ENOTEMPTY, "it has too much in it for one removal"))
        return others, below

    def _failed(self, error: OSError) -> None:
        # A program can make as many problems as there are files. One is told.
        self.problem = self.problem or error


def _opened(name: str, parent: int | None) -> int:
    """Open a directory, in which its owner may remove names then. Raises OSError."""
    try:
        directory = os.open(name, _OPEN, dir_fd=parent)
    except PermissionError:
        _open_up(name, parent)
        directory = os.open(name, _OPEN, dir_fd=parent)
    with suppress(OSError):
        os.fchmod(directory, 0o700)
    return directory


def _open_up(name: str, parent: int | None) -> None:
    if not _IS_LINUX:
        os.chmod(name, 0o700, dir_fd=parent, follow_symlinks=False)
        return
    place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{place}").chmod(0o700)
    finally:
        os.close(place)
