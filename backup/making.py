"""Makes a backup: database and keys, copied while the server serves, checked, and put on record."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from backup import directory as backups
from backup import keys
from backup.errors import BackupError
from backup.manifest import FORMAT, Manifest, StoredFile, name_of
from backup.sealed_file import Sealer
from backup.storage import storage
from controller_client import __version__
from projects.audit.log import audit
from projects.conf import conf

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Made:
    """A finished backup, and the old ones: those removed, and those that could not be."""

    path: Path
    manifest: Manifest
    removed: list[str]
    left: list[str]


def backup_make(
    directory: Path, *, actor: str, key_file: Path | None = None, keep: int | None = None
) -> Made:
    """Make a backup in ``directory``, and remove all but the newest ``keep``.

    With ``key_file`` its files are encrypted. Raises BackupError, and then there is no new backup.
    An audit row is there before the backup is, and another one once it is whole: if the process is
    killed in between, the first one tells of it.
    """
    sealer = None if key_file is None else Sealer(key_file)
    made_at = datetime.now(UTC).replace(microsecond=0)
    try:
        with backups.locked(directory):
            begun = {"backup": name_of(made_at), "sealed_with": sealer.kind if sealer else None}
            audit(actor, "backup.begin", (None, None, None), begun)
            with backups.draft(directory, name_of(made_at)) as draft:
                manifest = _filled(draft, made_at, sealer)
                manifest.write(draft)
            removed = _removed(directory, keep, name_of(made_at))
            left = backups.left_over(directory)
            if keep is not None:
                left += backups.of_others(directory)
                left += backups.too_many(directory, keep, made=name_of(made_at))
    except OSError as error:
        raise BackupError(f"the backup cannot be written: {error}") from None
    path = directory / name_of(made_at)
    detail = {
        "backup": path.name,
        "database_sha256": manifest.database.sha256,
        "sealed_with": manifest.sealed_with,
        "removed": removed,
    }
    audit(actor, "backup.make", (None, None, None), detail)
    return Made(path, manifest, removed, left)


def _removed(directory: Path, keep: int | None, made: str) -> list[str]:
    return [] if keep is None else backups.remove_old(directory, keep, made=made)


def _filled(draft: Path, made_at: datetime, sealer: Sealer | None) -> Manifest:
    """Write the files of the backup into its directory, and read all of them again."""
    stored = storage()
    with backups.beside_the_database() as beside:
        plain = draft if sealer is None else beside
        migrations = _migrations()
        rows = stored.copy_out(plain / stored.FILE)
        keys.write_current(plain / keys.FILE)
        database = _kept(plain / stored.FILE, draft, sealer)
        return Manifest(
            format=FORMAT,
            release=__version__,
            made_at=made_at,
            storage=connection.vendor,
            migrations=migrations,
            rows=rows,
            key_ids=keys.ids(conf.encryption_keys),
            sealed_with=None if sealer is None else sealer.kind,
            database=database,
            keys=_kept(plain / keys.FILE, draft, sealer),
        )


def _kept(plain: Path, draft: Path, sealer: Sealer | None) -> StoredFile:
    """Put one file into the backup, encrypted if there is a sealer, and check what lies there."""
    if sealer is None:
        plain.chmod(0o600)
        return _stored(plain)
    sealed = draft / f"{plain.name}.sealed"
    sealer.seal(plain, sealed)
    if _digest(sealer.check(sealed)) != _digest(_blocks(plain)):
        raise BackupError(f"{sealed} does not hold what was written into it")
    return _stored(sealed)


def _stored(file: Path) -> StoredFile:
    return StoredFile(name=file.name, size_bytes=file.stat().st_size, sha256=digest_of(file))


def digest_of(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return _digest(_blocks(file))


def _blocks(file: Path) -> Iterable[bytes]:
    with file.open("rb") as source:
        while block := source.read(_BLOCK_BYTES):
            yield block


def _digest(blocks: Iterable[bytes]) -> str:
    digest = sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _migrations() -> list[str]:
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in applied)
