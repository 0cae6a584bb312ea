"""Puts a backup back: checked before anything is replaced, suspended before anybody can use it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from backup import directory as backups
from backup import keys
from backup.errors import SERVED, BackupError
from backup.making import digest_of
from backup.manifest import Manifest, StoredFile
from backup.sealed_file import unsealed
from backup.storage import Storage, storage
from backup.suspension import suspend
from controller_client import __version__
from projects.models import Project
from projects.storage import unfinished

_FILLED: Final = (
    "the database is in use: it has projects or users. What was done since the backup will be "
    "gone; --replace replaces it"
)


def restore(
    directory: Path, *, actor: str, key_file: Path | None = None, is_replacing: bool = False
) -> list[str]:
    """Replace the database of this server by the backup in ``directory``, and suspend callers.

    Returns sentences for the administrator. Raises BackupError, mostly before anything is changed.
    """
    manifest, stored = Manifest.read(directory), storage()
    _require_fitting(manifest)
    with stored.kept_from_servers(), _opened(directory, manifest, key_file) as file:
        _require_free(stored, is_replacing=is_replacing)
        kept = keys.read(file(manifest.keys))
        keys.use(kept)

        def finish() -> None:
            # To the tables of this release, so that a backup of an older one serves at once.
            call_command("migrate", interactive=False, verbosity=0)
            suspend(made_at=manifest.made_at, release=manifest.release, actor=actor)

        stored.copy_in(file(manifest.database), finish)
        said = keys.put_back(kept)
        # Not before the keys are there: a server without them reads no secret of this database.
        unfinished.end()
        return said


def _require_fitting(manifest: Manifest) -> None:
    if manifest.storage != connection.vendor:
        raise BackupError(
            f"the backup is of {manifest.storage}, and this server's database is "
            f"{connection.vendor}: set DATABASE_URL"
        )
    known = MigrationLoader(None).disk_migrations
    newer = [name for name in manifest.migrations if tuple(name.split(".", 1)) not in known]
    if newer:
        raise BackupError(
            f"the backup, made by release {manifest.release}, has tables of a release that is "
            f"newer than this one ({__version__}): {newer[-1]}. Restore it with the newer release"
        )


def _require_free(stored: Storage, *, is_replacing: bool) -> None:
    if stored.users():
        raise BackupError(SERVED)
    if not is_replacing and _is_filled():
        raise BackupError(_FILLED)


def _is_filled() -> bool:
    """True if somebody would lose something. What a restore left unfinished belongs to nobody."""
    try:
        tables = connection.introspection.table_names()
        if Project._meta.db_table not in tables or unfinished.TABLE in tables:
            return False
        return Project.objects.exists() or get_user_model().objects.exists()
    except DatabaseError:
        # What cannot be read may still be worth something.
        return True


@contextmanager
def _opened(
    directory: Path, manifest: Manifest, key_file: Path | None
) -> Iterator[Callable[[StoredFile], Path]]:
    """Inside, each file of the backup can be had as a plain file that was checked."""
    if manifest.sealed_with is not None and key_file is None:
        raise BackupError(
            f"the backup is encrypted ({manifest.sealed_with}); name the passphrase file or the "
            "private key with --decrypt-with"
        )
    with backups.beside_the_database() as beside:

        def plain(stored: StoredFile) -> Path:
            file = directory / stored.name
            if not file.is_file() or digest_of(file) != stored.sha256:
                raise BackupError(f"{file} is missing, or is not what the manifest says")
            if manifest.sealed_with is None or key_file is None:
                return file
            opened = beside / stored.name.removesuffix(".sealed")
            with opened.open("xb") as target:
                for block in unsealed(file, key_file):
                    target.write(block)
            return opened

        yield plain
