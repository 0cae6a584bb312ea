"""Deleting a session's log, and nothing else whatever anybody does to the directory meanwhile.

Only in the managed directory of the daemon's own user, without following links; only a regular file of that user, with one name, that is
the very file which was monitored. The name is first exchanged for a secret one: what is then looked at is what is then removed. The
secret name says which file it was meant for, so that a daemon that was killed in between can be followed by one that finishes it.
"""

import os
import re
import secrets
import stat
from contextlib import suppress

from controller_client.log_paths import FileRefused, LogPaths, identity_of, is_plain
from controller_client.protocol.messages import DeleteFile, FileDeleted

_PRIVATE = re.compile(r"\.deleting-[0-9a-f]{32}-(\d+)-(\d+)")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def delete(paths: LogPaths, ask: DeleteFile) -> FileDeleted:
    """The answer to ``ask``. Never raises."""
    try:
        _delete(paths, ask.path, ask.identity)
    except FileRefused as refused:
        return FileDeleted(reply_to=ask.id, failure=refused.failure)
    except FileNotFoundError:
        return FileDeleted(reply_to=ask.id, failure=FileRefused("FILE_NOT_FOUND", "there is no such file").failure)
    except OSError as error:
        return FileDeleted(reply_to=ask.id, failure=FileRefused("DELETE_FAILED", f"the host could not delete it: {error.strerror}").failure)
    return FileDeleted(reply_to=ask.id)


def _delete(paths: LogPaths, path: str, identity: str) -> None:
    parts = paths.managed_parts(path)
    if not parts:
        raise FileRefused("NOT_MANAGED", "the file is not in the directory of session logs")
    directory = _open_directory(paths.managed, parts[:-1])
    try:
        _check(os.stat(parts[-1], dir_fd=directory, follow_symlinks=False), identity)
        private = f".deleting-{secrets.token_hex(16)}-{identity.replace(':', '-')}"
        os.rename(parts[-1], private, src_dir_fd=directory, dst_dir_fd=directory)
        try:
            _check(os.stat(private, dir_fd=directory, follow_symlinks=False), identity)
        except FileRefused:
            _put_back(directory, private, parts[-1])
            raise
        os.unlink(private, dir_fd=directory)
    finally:
        os.close(directory)


def finish_deletions(managed: str) -> None:
    """Removes what a daemon that was killed had begun to remove. Raises nothing: what cannot be looked at stays."""
    with suppress(OSError):
        for _, _, names, directory in os.fwalk(managed, follow_symlinks=False):
            with suppress(OSError, FileRefused):
                _check_owner(directory)
                for name in names:
                    _finish(directory, name)


def _finish(directory: int, name: str) -> None:
    meant_for = _PRIVATE.fullmatch(name)
    if meant_for is not None:
        with suppress(OSError, FileRefused):
            _check(os.stat(name, dir_fd=directory, follow_symlinks=False), ":".join(meant_for.groups()))
            os.unlink(name, dir_fd=directory)


def _open_directory(managed: str, below: list[str]) -> int:
    try:
        directory = os.open(managed, _DIRECTORY)
        try:
            _check_owner(directory)
            for part in below:
                inner = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = inner
                _check_owner(directory)
        except BaseException:
            os.close(directory)
            raise
    except FileNotFoundError:
        raise
    except OSError:
        raise FileRefused("NOT_MANAGED", "the file is not in the directory of session logs itself") from None
    return directory


def _check_owner(directory: int) -> None:
    status = os.fstat(directory)
    if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
        raise FileRefused("NOT_MANAGED", "the directory of session logs is another user's, or anybody can write to it")


def _check(status: os.stat_result, identity: str) -> None:
    if not is_plain(status) or identity_of(status) != identity:
        raise FileRefused("OTHER_FILE", "this is not the file that was monitored")
    if status.st_uid != os.geteuid():
        raise FileRefused("NOT_OWNED", "the file belongs to another user than the daemon's")


def _put_back(directory: int, private: str, name: str) -> None:
    """Whatever it is goes by its own name again, unless something else took that meanwhile: then it stays, under the other."""
    with suppress(OSError):
        os.link(private, name, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        os.unlink(private, dir_fd=directory)
        return
    with suppress(OSError):
        if not os.path.lexists(f"/proc/self/fd/{directory}/{name}"):
            os.rename(private, name, src_dir_fd=directory, dst_dir_fd=directory)
