"""Which files of this host may be monitored: regular files, with one name, in the operator's log directories.

A path is compared with the directories as text before anything is looked at, so that nothing outside can be told to exist. Inside, it is
opened component by component on held descriptors. A link is followed only as far as it stays inside, and never by the kernel, so what is
opened is what was checked. Everything that is not a readable regular file has the one answer PATH_NOT_ALLOWED.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from controller_client.errors import ConfigurationError
from controller_client.protocol.messages import Failure

MANAGED_DIRECTORY: Final = "/tmp/ssk-sessions"  # noqa: S108 - where session recorders put their logs; opened without following links
MAX_PATH_BYTES: Final = 4096
MAX_LINKS: Final = 16
# Nothing is ever there (it is the home of users who have none), so that it may be said without looking.
_NEVER_THERE: Final = "/nonexistent"
_NO_FILES: Final = ("/proc", "/sys", "/dev")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW | getattr(os, "O_PATH", 0)
# O_NONBLOCK: opening a FIFO must not wait for its writer.
_FILE: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


class FileRefused(Exception):
    """The file cannot be had; ``failure`` is the answer."""

    def __init__(self, code: str, message: str) -> None:
        self.failure = Failure(code=code, message=message)
        super().__init__(message)


def not_allowed() -> FileRefused:
    """The uniform refusal."""
    return FileRefused("PATH_NOT_ALLOWED", "this host does not let this path be monitored")


def not_found() -> FileRefused:
    """There is no such file, in a place where that may be said."""
    return FileRefused("FILE_NOT_FOUND", "there is no such file")


def read_error(error: OSError) -> FileRefused:
    """Something else is wrong."""
    return FileRefused("FILE_READ_ERROR", f"the host could not read the file ({errno.errorcode.get(error.errno or 0, 'EIO')})")


@dataclass(frozen=True)
class Place:
    """An opened directory and the name of a file in it. The descriptor is the block's that ``LogPaths.place`` was entered for.

    ``path`` is the directory's, as it was then, without links.
    """

    directory: int
    name: str
    path: str

    def open(self, name: str | None = None) -> int:
        """A descriptor of the file, which is regular and has one name. Raises FileRefused."""
        wanted = self.name if name is None else name
        try:
            # Looked at first, because opening a device may do something; and again once it is open, because that is what counts.
            if not is_plain(os.stat(wanted, dir_fd=self.directory, follow_symlinks=False)):
                raise not_allowed()
            descriptor = os.open(wanted, _FILE, dir_fd=self.directory)
        except OSError as error:
            raise _refusal(error) from None
        if not is_plain(os.fstat(descriptor)):
            os.close(descriptor)
            raise not_allowed()
        return descriptor


def is_plain(status: os.stat_result) -> bool:
    """A regular file, and this is its only name: another could lead to a file of elsewhere."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def identity_of(status: os.stat_result) -> str:
    """What names a file as long as it is there."""
    return f"{status.st_dev}:{status.st_ino}"


class LogPaths:
    """The directories, as they were configured."""

    def __init__(self, roots: Sequence[str] = (), managed: str = MANAGED_DIRECTORY) -> None:
        self.managed = _checked_root(managed)
        self._roots = (self.managed, *map(_checked_root, roots))

    @contextmanager
    def place(self, path: str) -> Iterator[Place]:
        """Where ``path`` leads. Raises FileRefused."""
        below = self._below(path)
        for _ in range(MAX_LINKS):
            place, target = _walk(*below)
            if place is not None:
                try:
                    yield place
                finally:
                    os.close(place.directory)
                return
            below = self._below(target)
        raise not_allowed()

    def resolved(self, path: str) -> tuple[str, str]:
        """(directory, name) of the file without links, as things are now. Raises FileRefused."""
        with self.place(path) as place:
            return place.path, place.name

    def managed_parts(self, path: str) -> list[str] | None:
        """Names of the components below the managed directory; None for a path that is elsewhere."""
        parts = _parts_of(path)
        return None if parts is None else _beneath(self.managed, parts)

    def _below(self, path: str) -> tuple[str, list[str]]:
        """The directory that ``path`` is in, and what is left of the path; by its text alone."""
        parts = _parts_of(path)
        if parts is None:
            raise not_allowed()
        if f"/{parts[0]}" == _NEVER_THERE:
            raise not_found()
        found = [(root, rest) for root in self._roots if (rest := _beneath(root, parts))]
        if not found:
            raise not_allowed()
        # The innermost: it may be the one whose own path has a link in it.
        return max(found, key=lambda match: len(match[0]))


def _walk(root: str, parts: list[str]) -> tuple[Place | None, str]:
    """The place, or the path that a link on the way leads to."""
    directory = _open_root(root)
    try:
        for index, part in enumerate(parts):
            link = _link_target(directory, part)
            if link is not None:
                return None, _resolved(root, parts[:index], link, parts[index + 1 :])
            if index < len(parts) - 1:
                below = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = below
        place, directory = Place(directory, parts[-1], "/".join([root, *parts[:-1]])), -1
        return place, ""
    except OSError as error:
        raise _refusal(error) from None
    finally:
        if directory >= 0:
            os.close(directory)


def _open_root(root: str) -> int:
    try:
        return os.open(root, _DIRECTORY)
    except FileNotFoundError:
        raise not_found() from None
    except OSError as error:
        # A link in place of the directory itself is nobody's to put there.
        raise (not_allowed() if error.errno in {errno.ELOOP, errno.ENOTDIR} else _refusal(error)) from None


def _link_target(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        # No link, or nothing: between two files of a series there may be none.
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def _resolved(root: str, before: list[str], link: str, after: list[str]) -> str:
    """The path with the link's text in its place, ``..`` taken out: everything before the link was found to be a directory, not a link."""
    start = [] if link.startswith("/") else [part for part in root.split("/") if part] + before
    for part in link.split("/"):
        if part == "..":
            del start[-1:]
        elif part not in {"", "."}:
            start.append(part)
    return "/" + "/".join([*start, *after])


def _parts_of(path: str) -> list[str] | None:
    """The components of an absolute path without ``..``; None for anything else."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    try:
        is_sound = path.startswith("/") and "\0" not in path and len(path.encode()) <= MAX_PATH_BYTES
    except UnicodeEncodeError:
        return None
    return parts if is_sound and parts and ".." not in parts and not path.endswith("/") else None


def _beneath(root: str, parts: list[str]) -> list[str] | None:
    top = root.split("/")[1:]
    return parts[len(top) :] if parts[: len(top)] == top and len(parts) > len(top) else None


def _checked_root(root: str) -> str:
    path = os.path.normpath(root)
    if (
        not path.startswith("/")
        or path.startswith("//")
        or path == "/"
        or any(path == top or path.startswith(f"{top}/") for top in _NO_FILES)
    ):
        raise ConfigurationError(f"{root} cannot be a log directory: it has to be an absolute path of a directory with files, and not /")
    return path


def _refusal(error: OSError) -> FileRefused:
    if error.errno in {errno.ENOENT, errno.ENAMETOOLONG}:
        return not_found()
    if error.errno in {errno.EACCES, errno.EPERM}:
        return FileRefused("FILE_NOT_READABLE", "the daemon's user may not read this file")
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV}:
        return not_allowed()
    return read_error(error)


def make_managed_directory(path: str) -> None:
    """The directory of session logs, if it is not there and can be made; it is the daemon's user's alone."""
    with suppress(OSError):
        os.mkdir(path, 0o700)  # noqa: PTH102 - with the mode, and never its parents
