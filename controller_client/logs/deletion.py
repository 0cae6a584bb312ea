"""Deletes a session's log, and nothing else, whatever anybody does to the directory meanwhile.

A file is deleted only in the managed directory of the daemon's own user, and links are not
followed. It must be a regular file of that user, or of the programs', with a single hard link, and
the very file that was monitored. First it gets a secret name, so that the file that is then checked
is the file that is then removed. The secret name says which file it was meant for: if the daemon is
killed in between, the next daemon finishes the deletion.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Generator
from contextlib import closing, suppress
from typing import Final

from controller_client.logs.paths import FileRefused, LogPaths, identity_of, is_plain
from controller_client.protocol.messages import DeleteFile, Failure, FileDeleted

MOST_LEVELS: Final = 64
"""A deletion that was cut short is not looked for in directories deeper than that."""

_PRIVATE = re.compile(r"\.deleting-[0-9a-f]{32}-(\d+)-(\d+)")
# A link or a file in place of a directory, or a directory that is closed to the daemon's user.
_ELSEWHERE = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM})
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def delete(paths: LogPaths, ask: DeleteFile) -> FileDeleted:
    """Delete a file and return the answer to ``ask``. Never raises."""
    failure: Failure | None = None
    try:
        _delete(paths, ask.path, ask.identity)
    except FileRefused as refused:
        failure = refused.failure
    except FileNotFoundError:
        failure = FileRefused("FILE_NOT_FOUND").failure
    except OSError as error:
        message = f"the host could not delete it: {error.strerror}"
        failure = Failure(code="DELETE_FAILED", message=message)
    return FileDeleted(reply_to=ask.id, failure=failure)


def _delete(paths: LogPaths, path: str, identity: str) -> None:
    parts = paths.managed_parts(path)
    if not parts:
        raise FileRefused("NOT_MANAGED", "the file is not in the directory of session logs")
    owners = paths.owners()
    directory = _open_directory(paths.managed, parts[:-1], owners)
    try:
        _check(directory, parts[-1], identity, owners)
        private = f".deleting-{secrets.token_hex(16)}-{identity.replace(':', '-')}"
        os.rename(parts[-1], private, src_dir_fd=directory, dst_dir_fd=directory)
        try:
            _check(directory, private, identity, owners)
        except FileRefused:
            _put_back(directory, private, parts[-1])
            raise
        os.unlink(private, dir_fd=directory)
    finally:
        os.close(directory)


def finish_deletions(paths: LogPaths) -> None:
    """Remove the files that a daemon was about to remove when it was killed.

    Raises nothing: what cannot be looked at stays.
    """
    owners = paths.owners()
    walk = directories_within(paths.managed, MOST_LEVELS)
    with suppress(OSError), closing(walk):
        for directory, names in walk:
            with suppress(OSError, FileRefused):
                _check_owner(directory, owners)
                for meant_for in filter(None, map(_PRIVATE.fullmatch, names)):
                    with suppress(OSError, FileRefused):
                        _check(directory, meant_for.string, ":".join(meant_for.groups()), owners)
                        os.unlink(meant_for.string, dir_fd=directory)


def _open_directory(managed: str, below: list[str], owners: frozenset[int]) -> int:
    try:
        directory = os.open(managed, _DIRECTORY)
        try:
            _check_owner(directory, owners)
            for part in below:
                inner = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = inner
                _check_owner(directory, owners)
        except BaseException:
            os.close(directory)
            raise
    except OSError as error:
        if error.errno not in _ELSEWHERE:
            raise
        raise FileRefused(
            "NOT_MANAGED", "the file is not in the directory of session logs itself"
        ) from None
    return directory


def _check_owner(directory: int, owners: frozenset[int]) -> None:
    status = os.fstat(directory)
    if status.st_uid not in owners or status.st_mode & stat.S_IWOTH:
        raise FileRefused(
            "NOT_MANAGED",
            "the directory of session logs is another user's, or anybody can write to it",
        )


def _check(directory: int, name: str, identity: str, owners: frozenset[int]) -> None:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not is_plain(status) or identity_of(status) != identity:
        raise FileRefused("OTHER_FILE", "this is not the file that was monitored")
    if status.st_uid not in owners:
        raise FileRefused(
            "NOT_OWNED", "the file belongs neither to the daemon's user nor to that of programs"
        )


def _put_back(directory: int, private: str, name: str) -> None:
    """Give the file its own name back, unless that was taken: then it keeps the secret name."""
    with suppress(OSError):
        os.link(private, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        os.unlink(private, dir_fd=directory)
        return
    with suppress(OSError):
        if not os.path.lexists(f"/proc/self/fd/{directory}/{name}"):
            os.rename(private, name, src_dir_fd=directory, dst_dir_fd=directory)


def directories_within(path: str, most_levels: int) -> Generator[tuple[int, list[str]], None, None]:
    """Yield each directory, opened for the caller's step, with the names of its other files.

    Directories below so many levels are left out, and those that cannot be looked at. Raises
    OSError for the first one.
    """
    opened = [os.open(path, _DIRECTORY)]
    try:
        others, names = _listed(opened[0])
        pending = [names]
        yield opened[0], others
        while opened:
            if not pending[-1] or len(opened) >= most_levels:
                pending.pop()
                os.close(opened.pop())
                continue
            name, inner = pending[-1].pop(), -1
            try:
                inner = os.open(name, _DIRECTORY, dir_fd=opened[-1])
                others, names = _listed(inner)
            except OSError:
                if inner >= 0:
                    os.close(inner)
                continue
            opened.append(inner)
            pending.append(names)
            yield inner, others
    finally:
        for directory in opened:
            os.close(directory)


def _listed(directory: int) -> tuple[list[str], list[str]]:
    """Return the names in a directory: of other files, and of directories. Raises OSError."""
    with os.scandir(directory) as entries:
        kinds = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    below = [name for name, is_directory in kinds.items() if is_directory]
    return [name for name in kinds if not kinds[name]], below
