"""The directory of backups: a backup appears there whole or not at all, and goes whole."""

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from django.conf import settings

from backup import manifest
from backup.errors import BackupError

_UNFINISHED: Final = ".unfinished-"
_PLAIN: Final = ".backup-"
_NAME: Final = re.compile(r"holdline-\d{8}T\d{6}Z")


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Inside, no other backup or restore uses the directory. Raises BackupError."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise BackupError(f"{directory} cannot be used: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupError(f"another backup or restore uses {directory} now") from None
        except OSError as error:
            raise BackupError(f"{directory} cannot be locked: {error.strerror}") from None
        yield
    finally:
        os.close(descriptor)


@contextmanager
def beside_the_database() -> Iterator[Path]:
    """A directory for what is encrypted in a backup: in the data directory it lies in the clear.

    No two backups or restores are there at once. What a killed process left is removed first.
    """
    data_dir = Path(settings.DATA_DIR)
    with locked(data_dir):
        for left in data_dir.glob(f"{_PLAIN}*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_PLAIN, dir=data_dir) as beside:
            yield Path(beside)


@contextmanager
def draft(directory: Path, name: str) -> Iterator[Path]:
    """A directory to fill, which becomes the backup ``name`` once all of it is on the disk.

    If the block fails, nothing of it stays. What a killed process left is removed first.
    """
    for left in directory.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    unfinished, final = directory / f"{_UNFINISHED}{name}", directory / name
    if final.exists():
        raise BackupError(f"{final} exists already; wait for a second")
    try:
        unfinished.mkdir(mode=0o700)
        yield unfinished
        for path in (*unfinished.iterdir(), unfinished):
            flush(path)
        unfinished.rename(final)
        flush(directory)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def remove_old(directory: Path, keep: int, *, made: str) -> list[str]:
    """Remove all whole backups but ``made`` and the newest others, ``keep`` in all.

    The backup that was just made stays even if a clock that went ahead named others after it.
    Returns the names of those removed; ``too_many`` has those that may not be.
    """
    removed = []
    for path in _old(directory, keep, made):
        # First it stops being a backup: a removal that is cut short leaves none that looks whole.
        gone = path.with_name(f"{_UNFINISHED}{path.name}")
        try:
            path.rename(gone)
        except OSError:
            continue
        shutil.rmtree(gone, ignore_errors=True)
        removed.append(path.name)
    return removed


def too_many(directory: Path, keep: int, *, made: str) -> list[str]:
    """The names of whole backups beyond the newest ``keep``: others' in a shared directory."""
    return [path.name for path in _old(directory, keep, made)]


def _old(directory: Path, keep: int, made: str) -> list[Path]:
    others = sorted(
        path
        for path in directory.iterdir()
        if _NAME.fullmatch(path.name) and path.name != made and _is_whole(path)
    )
    return others[: max(0, len(others) + 1 - keep)]


def _is_whole(backup: Path) -> bool:
    """False also for the backup of another user, which only that user can read and remove."""
    try:
        return (backup / manifest.FILE).is_file()
    except PermissionError:
        return False


def left_over(directory: Path) -> list[str]:
    """The names of directories that could not be removed; they are no backups any more."""
    return sorted(path.name for path in directory.glob(f"{_UNFINISHED}*"))


def of_others(directory: Path) -> list[str]:
    """The names of the backups in ``directory`` that this user cannot look into."""
    return sorted(
        path.name
        for path in directory.iterdir()
        if _NAME.fullmatch(path.name) and not os.access(path, os.R_OK | os.X_OK)
    )


def flush(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk before going on."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def fresh_file(fresh: Path, *, like: Path) -> Iterator[IO[bytes]]:
    """A new file to be written, which is to take the place of ``like``.

    It belongs to whom the server runs as: root may restore, and a server that is another user could
    not open what root has made. That user may put links in the place of the names in its directory,
    so nothing is done by name once the file is made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
        if os.geteuid() == 0:
            owner = (like if like.exists() else like.parent).stat()
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
        yield file
        file.flush()
        os.fsync(file.fileno())


def own_text(path: Path) -> str:
    """The text of a file of the server. Raises BackupError if it is a link to another file.

    Root would copy what only root may read into a file of the server's user.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise BackupError(f"{path} is a link; put the file itself there") from None
    with os.fdopen(descriptor) as file:
        return file.read()
