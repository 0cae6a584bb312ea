"""``manage.py restore DIR``: put a backup back, and suspend what it brings back."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from backup.errors import BackupError
from backup.restoring import restore
from projects.management.naming import actor
from projects.management.refusals import RefusingCommand, refused
from projects.storage.sqlite.base import making_database


class Command(RefusingCommand):
    help = (
        "Replace the database of this server by a backup. Tokens and logins of the backup are "
        "refused until manage.py confirm_restore."
    )
    # A restore that was cut short is an error of these checks.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "directory", type=Path, metavar="DIR", help="the directory of one backup"
        )
        parser.add_argument(
            "--decrypt-with",
            type=Path,
            metavar="FILE",
            help="the passphrase file, or the private key, of an encrypted backup",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace a database that has projects or users",
        )

    def handle(
        self, *, directory: Path, decrypt_with: Path | None, replace: bool, **_options: Any
    ) -> None:
        try:
            with making_database():
                said = restore(
                    directory, actor=actor(), key_file=decrypt_with, is_replacing=replace
                )
        except BackupError as error:
            raise refused(f"not restored (RESTORE_REFUSED): {error}") from None
        except OSError as error:
            raise refused(
                f"the restore was cut short: {error} (RESTORE_CUT_SHORT). Run it again"
            ) from None
        for sentence in said:
            self.stdout.write(sentence)
        self.stdout.write(
            "Restored. Hosts may connect; tokens and logins are refused until you have run "
            "manage.py confirm_restore."
        )
