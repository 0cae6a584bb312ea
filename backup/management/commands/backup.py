"""``manage.py backup DIR``: copy database and keys, while the server serves."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from backup.errors import BackupError
from backup.making import backup_make
from projects.management.naming import actor
from projects.management.numbers import count
from projects.management.refusals import RefusingCommand, refused


class Command(RefusingCommand):
    help = "Make a backup in a new directory of DIR: the database, the keys, and a manifest."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", type=Path, metavar="DIR", help="where backups are kept")
        parser.add_argument(
            "--encrypt-to",
            type=Path,
            metavar="FILE",
            help="a file with a passphrase, or with a public X25519 key in PEM",
        )
        parser.add_argument(
            "--keep",
            type=count,
            metavar="N",
            help="remove all but the newest N backups, once this one is made",
        )

    def handle(
        self, *, directory: Path, encrypt_to: Path | None, keep: int | None, **_options: Any
    ) -> None:
        try:
            made = backup_make(directory, actor=actor(), key_file=encrypt_to, keep=keep)
        except BackupError as error:
            raise refused(f"no backup was made (BACKUP_REFUSED): {error}") from None
        size = made.manifest.database.size_bytes
        self.stdout.write(f"{made.path}: {size} bytes, {sum(made.manifest.rows.values())} rows")
        if encrypt_to is None:
            self.stderr.write(
                "It is not encrypted: whoever finds it can read every stored secret (--encrypt-to)."
            )
        for name in made.removed:
            self.stdout.write(f"removed: {name}")
        if made.left:
            names = ", ".join(made.left)
            raise CommandError(
                f"the backup was made, but these old ones in {directory} cannot be removed: "
                f"{names}. See who owns them"
            )
