"""The removal of a directory that programs made, perhaps thousands of levels deep.

It neither calls itself nor opens paths: what is as deep has no path that a kernel takes.
"""

import os
import secrets
import sys
from contextlib import suppress
from errno import ENOTDIR
from pathlib import Path
from typing import Final

_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
_IS_LINUX: Final = sys.platform.startswith("linux")


def remove_tree(path: Path) -> None:
    """Remove a directory with all that is in it; a link to one is none.

    Its owner gets into what a program has closed to them. Each directory is moved to the top before
    it is emptied, so few descriptors are open however deep it was. What can be removed is removed.
    Raises OSError for the first that cannot.
    """
    try:
        top = _opened(str(path), None)
    except NotADirectoryError:
        raise NotADirectoryError(
            ENOTDIR, "it is no directory itself, but a file or a symbolic link", str(path)
        ) from None
    try:
        problems = _emptied(top)
    finally:
        os.close(top)
    try:
        path.rmdir()
    except OSError as error:
        raise next(iter(problems), error) from None


def _emptied(top: int) -> list[OSError]:
    """Empty a directory; return why something is left."""
    problems: list[OSError] = []
    kept: set[str] = set()
    _remove_files(top, problems)
    while names := [name for name in _listed(top)[1] if name not in kept]:
        for name in names:
            try:
                inner = _opened(name, top)
                try:
                    _remove_files(inner, problems)
                    for below in _listed(inner)[1]:
                        _move_up(below, inner, top, problems)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
            except OSError as error:
                problems.append(error)
                kept.add(name)
    return problems


def _remove_files(directory: int, problems: list[OSError]) -> None:
    for name in _listed(directory)[0]:
        try:
            os.unlink(name, dir_fd=directory)
        except OSError as error:
            problems.append(error)


def _move_up(name: str, directory: int, top: int, problems: list[OSError]) -> None:
    """Give a directory a name of its own in ``top``, or remove it if it is empty."""
    try:
        # Only who may write in a directory can move it elsewhere.
        os.close(_opened(name, directory))
        os.rename(name, secrets.token_hex(16), src_dir_fd=directory, dst_dir_fd=top)
    except OSError as error:
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError:
            problems.append(error)


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


def _listed(directory: int) -> tuple[list[str], list[str]]:
    """Return the names in a directory: of other files, and of directories. Raises OSError."""
    others: list[str] = []
    below: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            (below if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
    return others, below
