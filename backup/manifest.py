"""The manifest of a backup: what it holds, by which release it was made, and its digests."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from backup.errors import BackupError

FORMAT: Final = 1
FILE: Final = "manifest.json"


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of the backup, as it lies there."""

    name: str
    size_bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``manifest.json``.

    ``storage`` is the vendor of the database. ``migrations`` are ``app.name`` of all that were
    applied, ``rows`` the number of rows of each table. ``key_ids`` name the encryption keys of the
    server without giving them away. ``sealed_with`` is "passphrase" or "public key"; None for
    files that are not encrypted.
    """

    format: int
    release: str
    made_at: datetime
    storage: str
    migrations: list[str]
    rows: dict[str, int]
    key_ids: list[str]
    sealed_with: str | None
    database: StoredFile
    keys: StoredFile

    def write(self, directory: Path) -> None:
        """Write the manifest into the directory of its backup."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=2)
        (directory / FILE).write_bytes(text + b"\n")

    @classmethod
    def read(cls, directory: Path) -> "Manifest":
        """Read the manifest of a backup. Raises BackupError."""
        path = directory / FILE
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls, strict=True)
        except FileNotFoundError:
            raise BackupError(
                f"{directory} is no backup: it has no {FILE}. Name the directory of one backup, "
                "such as DIR/holdline-20261123T023855Z"
            ) from None
        except (OSError, msgspec.DecodeError) as error:
            raise BackupError(f"{path} cannot be read: {error}") from None
        if found.format > FORMAT:
            raise BackupError(
                f"the backup has format {found.format}, made by release {found.release}, which is "
                "newer than this one"
            )
        if any(Path(stored.name).name != stored.name for stored in (found.database, found.keys)):
            raise BackupError(f"{path} names a file outside its directory")
        return found


def name_of(made_at: datetime) -> str:
    """The name of the directory of a backup."""
    return f"holdline-{made_at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
