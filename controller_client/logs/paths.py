"""Opens the files that may be monitored: regular ones in the operator's log directories.

A path is compared with the directories as text before anything is looked at. So an answer never
tells whether something outside exists. Inside, the path is opened component by component on held
descriptors. A link is followed only as far as it stays inside, and never by the kernel, so what is
opened is what was checked. A file must have a single hard link: another name could lead to a file
of elsewhere. Everything that is not such a file has the one answer PATH_NOT_ALLOWED.

The directory of session logs is in a place where every local user can make it first. So it, and
every directory below it, must belong to the daemon's user, to the user of its programs or to root;
unless the operator names the same directory as a log root, and so trusts whoever owns it.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller_client.protocol.limits import MAX_LOG_ROOT_CHARS, MAX_LOG_ROOTS
from controller_client.protocol.messages import Failure

MANAGED_DIRECTORY: Final = "/tmp/ssk-sessions"  # noqa: S108 - where session recorders put their logs; opened without following links
MAX_PATH_BYTES: Final = 4096
_OURS: Final = 0o700
_SHARED: Final = 0o2770
"""The mode of the directory of session logs, without and with another user's programs."""
MAX_LINKS: Final = 16
# The home of users who have none. Nothing is ever there, which may be said without a look.
_NEVER_THERE: Final = "/nonexistent"
_NO_FILES: Final = ("/proc", "/sys", "/dev")
_DIRECTORY: Final = (
    os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW | getattr(os, "O_PATH", 0)
)
# O_NONBLOCK: opening a FIFO must not wait for its writer.
_FILE: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_MISSING: Final = "it does not exist"
_NO_DIRECTORY: Final = "it is a file or a link, not a directory"
_MESSAGES: Final = {
    # Said of everything outside, whether or not it exists.
    "PATH_NOT_ALLOWED": "this host does not let this path be monitored",
    # Said only of places inside.
    "FILE_NOT_FOUND": "there is no such file",
    "FILE_NOT_READABLE": "the daemon's user may not read this file",
    # The directory is closed, or is missing and nobody makes it: nothing is known of its files.
    "LOG_DIRECTORY_UNUSABLE": "the daemon's user cannot use this log directory",
    # Whoever owns the directory could write the logs that are read here.
    "LOG_DIRECTORY_FOREIGN": (
        "the directory belongs neither to the daemon's user, nor to that of programs, nor to root"
    ),
}


class FileRefused(Exception):
    """The file cannot be had; ``failure`` is the answer.

    Codes of this module have their own ``message``.
    """

    def __init__(self, code: str, message: str | None = None) -> None:
        self.failure = Failure(code=code, message=message or _MESSAGES[code])
        super().__init__(self.failure.message)


def read_error(error: OSError) -> FileRefused:
    """Make the answer for an error that says nothing about whether the file exists."""
    return FileRefused(
        "FILE_READ_ERROR",
        f"the host could not read the file ({errno.errorcode.get(error.errno or 0, 'EIO')})",
    )


@dataclass(frozen=True)
class Place:
    """An opened directory and the name of a file in it.

    The descriptor is closed at the end of the block that ``LogPaths.place`` was entered for.
    ``path`` is the path of the directory without links, as it was then.
    """

    directory: int
    name: str
    path: str

    def open(self, name: str) -> int:
        """Open a file of the directory: a regular one that has no other name.

        Raises FileRefused.
        """
        try:
            # Looked at before it is opened, because opening a device may do something; and again
            # once it is open, because the open file is what will be read.
            if not is_plain(os.stat(name, dir_fd=self.directory, follow_symlinks=False)):
                raise FileRefused("PATH_NOT_ALLOWED")
            descriptor = os.open(name, _FILE, dir_fd=self.directory)
        except OSError as error:
            raise _refusal(error) from None
        if not is_plain(os.fstat(descriptor)):
            os.close(descriptor)
            raise FileRefused("PATH_NOT_ALLOWED")
        return descriptor


def is_plain(status: os.stat_result) -> bool:
    """Return whether it is a regular file and has no other name, which could be elsewhere."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def identity_of(status: os.stat_result) -> str:
    """Return the device and inode of a file, which name it as long as it exists."""
    return f"{status.st_dev}:{status.st_ino}"


class LogPaths:
    """The log directories of this host, as they were configured.

    Raises ValueError for a directory that can never have logs.
    """

    def __init__(self, roots: Sequence[str] = (), managed: str = MANAGED_DIRECTORY) -> None:
        self.managed = _checked_root(managed)
        opened = tuple(map(_checked_root, roots))
        self._roots = (self.managed, *opened)
        self._is_owner_checked = self.managed not in opened
        # The user and the group of programs, if they are others than the daemon's.
        self._programs: tuple[int, int] | None = None

    def share_with(self, user: int, group: int) -> None:
        """Let programs of another user than the daemon's have their logs among session logs."""
        self._programs = (user, group)

    def owners(self) -> frozenset[int]:
        """Return whose files may be session logs: the daemon's user, and that of its programs."""
        user = () if self._programs is None else self._programs[:1]
        return frozenset((os.geteuid(), *user))

    def make_managed(self) -> bool:
        """Make the directory of session logs, unless the name is taken.

        The daemon's user alone can enter it, and its programs. Returns False if it could not be
        made.
        """
        try:
            Path(self.managed).mkdir(_OURS)
        except OSError as error:
            if not isinstance(error, FileExistsError):
                return False
        if self._programs is not None:
            _open_to_group(self.managed, self._programs[1])
        return True

    @property
    def roots(self) -> list[str]:
        """Every log directory, the one of session logs first."""
        return list(dict.fromkeys(self._roots))

    def shown_roots(self) -> list[str]:
        """Return the log directories that callers are told of: those that can be used now.

        A path that is too long is left out, because half a path names another directory.
        """
        unusable = dict(self.problems())
        return [
            root
            for root in self.roots
            if root not in unusable and len(root) <= MAX_LOG_ROOT_CHARS and root.isprintable()
        ][:MAX_LOG_ROOTS]

    def problems(self) -> list[tuple[str, str]]:
        """Return (directory, reason) of each log directory that cannot be used now."""
        return [(root, reason) for root in self.roots if (reason := self.problem_of(root))]

    def problem_of(self, root: str) -> str:
        """Return why a log directory cannot be used now; empty if it can."""
        try:
            os.close(self._open_root(root))
        except FileRefused as refused:
            # The directory of session logs was missing, and has just been made.
            return "" if refused.failure.code == "FILE_NOT_FOUND" else refused.failure.message
        return ""

    @contextmanager
    def place(self, path: str) -> Iterator[Place]:
        """Open the directory that ``path`` leads to, for a block. Raises FileRefused."""
        below = self._below(path)
        for _ in range(MAX_LINKS):
            place, target = self._walk(*below)
            if place is not None:
                try:
                    yield place
                finally:
                    os.close(place.directory)
                return
            below = self._below(target)
        raise FileRefused("PATH_NOT_ALLOWED")

    def resolved(self, path: str) -> tuple[str, str]:
        """Return (directory, name) of the file without links, as of now. Raises FileRefused."""
        with self.place(path) as place:
            return place.path, place.name

    def managed_parts(self, path: str) -> list[str] | None:
        """Return the components of a path below the managed directory; None if it is elsewhere."""
        parts = _parts_of(path)
        return None if parts is None else _beneath(self.managed, parts)

    def _below(self, path: str) -> tuple[str, list[str]]:
        """Return the log directory that ``path`` is in, and the rest of it, by its text alone."""
        parts = _parts_of(path)
        if parts is None:
            raise FileRefused("PATH_NOT_ALLOWED")
        if f"/{parts[0]}" == _NEVER_THERE:
            raise FileRefused("FILE_NOT_FOUND")
        found = [(root, rest) for root in self._roots if (rest := _beneath(root, parts))]
        if not found:
            raise FileRefused("PATH_NOT_ALLOWED")
        # The innermost directory: it may be one whose own path has a link in it.
        return max(found, key=lambda match: len(match[0]))

    def _walk(self, root: str, parts: list[str]) -> tuple[Place | None, str]:
        """Return the place, or None and the path that a link on the way leads to."""
        directory = self._open_root(root)
        try:
            for index, part in enumerate(parts):
                link = _link_target(directory, part)
                if link is not None:
                    return None, _resolved(root, parts[:index], link, parts[index + 1 :])
                if index < len(parts) - 1:
                    below = os.open(part, _DIRECTORY, dir_fd=directory)
                    os.close(directory)
                    directory = below
                    self._check_owner(root, directory)
            place, directory = Place(directory, parts[-1], "/".join([root, *parts[:-1]])), -1
            return place, ""
        except OSError as error:
            raise _refusal(error) from None
        finally:
            if directory >= 0:
                os.close(directory)

    def _open_root(self, root: str) -> int:
        try:
            directory = os.open(root, _DIRECTORY)
        except FileNotFoundError:
            # A directory that was taken away is made again, before another user makes it.
            if root != self.managed:
                raise FileRefused("LOG_DIRECTORY_UNUSABLE", _MISSING) from None
            if not self.make_managed():
                raise FileRefused("LOG_DIRECTORY_UNUSABLE") from None
            raise FileRefused("FILE_NOT_FOUND") from None
        except OSError as error:
            raise _root_refusal(error) from None
        try:
            self._check_owner(root, directory)
            # Only a look at something in it tells whether its names may be looked up.
            os.stat(".", dir_fd=directory)
        except OSError as error:
            os.close(directory)
            raise _root_refusal(error) from None
        except FileRefused:
            os.close(directory)
            raise
        return directory

    def _check_owner(self, root: str, directory: int) -> None:
        """Refuse a directory of session logs that another local user made."""
        if (
            root == self.managed
            and self._is_owner_checked
            and os.fstat(directory).st_uid not in {0, *self.owners()}
        ):
            raise FileRefused("LOG_DIRECTORY_FOREIGN")


def _link_target(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        # It is no link, or there is nothing: between two files of a series there may be none.
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def _resolved(root: str, before: list[str], link: str, after: list[str]) -> str:
    """Return the path with the text of the link in the place of the link, without ``..``.

    ``..`` can be taken out of the text because everything before the link is a directory.
    """
    start = [] if link.startswith("/") else [part for part in root.split("/") if part] + before
    for part in link.split("/"):
        if part == "..":
            del start[-1:]
        elif part not in {"", "."}:
            start.append(part)
    return "/" + "/".join([*start, *after])


def _parts_of(path: str) -> list[str] | None:
    """Return the components of an absolute path without ``..``; None for any other path."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    try:
        is_sound = (
            path.startswith("/") and "\0" not in path and len(path.encode()) <= MAX_PATH_BYTES
        )
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
        or "\0" in path
        or any(path == top or path.startswith(f"{top}/") for top in _NO_FILES)
    ):
        raise ValueError(
            f"{root} cannot be a log directory: it has to be an absolute path of a directory with "
            "files, and not /"
        )
    return path


def _refusal(error: OSError) -> FileRefused:
    if error.errno in {errno.ENOENT, errno.ENAMETOOLONG}:
        return FileRefused("FILE_NOT_FOUND")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return FileRefused("FILE_NOT_READABLE")
    # ELOOP and ENOTDIR: a link in place of a directory.
    if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENODEV}:
        return FileRefused("PATH_NOT_ALLOWED")
    return read_error(error)


def _root_refusal(error: OSError) -> FileRefused:
    if isinstance(error, PermissionError):
        return FileRefused("LOG_DIRECTORY_UNUSABLE")
    if error.errno in {errno.ENOTDIR, errno.ELOOP}:
        return FileRefused("PATH_NOT_ALLOWED", _NO_DIRECTORY)
    if error.errno == errno.ENAMETOOLONG:
        return FileRefused("LOG_DIRECTORY_UNUSABLE", _MISSING)
    return _refusal(error)


def _open_to_group(path: str, group: int) -> None:
    """Let a group of the daemon's user write to a directory that the daemon has made.

    One that is not as the daemon makes it is as its administrator wants it.
    """
    with suppress(OSError):
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            status = os.fstat(directory)
            if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == _OURS:
                os.fchown(directory, -1, group)
                os.fchmod(directory, _SHARED)
        finally:
            os.close(directory)
