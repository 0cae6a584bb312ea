"""``manage.py confirm_restore``: look at what a restore brought back, and let it count again."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from backup import suspension
from projects.management.naming import actor, printable
from projects.management.refusals import RefusingCommand, refused
from projects.management.signed_heads import heads_of_log


class Command(RefusingCommand):
    help = (
        "List the tokens, users, hosts, targets and secrets that a restore brought back. With "
        "--yes, let tokens and logins count again. Revoke first what was revoked since the backup."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--yes", action="store_true", help="confirm the restore")
        parser.add_argument(
            "--log",
            type=Path,
            action="append",
            default=[],
            dest="logs",
            metavar="FILE",
            help=(
                "a server log that was kept elsewhere: heads of the audit log that it reports as "
                "signed, and that are not there any more, are put on record as lost; may repeat"
            ),
        )

    def handle(self, *, yes: bool, logs: list[Path], **_options: Any) -> None:
        restore = suspension.unconfirmed()
        if restore is None:
            raise refused(
                "no restore waits for a confirmation (NOTHING_TO_CONFIRM). "
                "The server is in use already"
            )
        self.stdout.write(f"restored from the backup of {restore}:")
        for kind, names in suspension.brought_back().items():
            self.stdout.write(printable(f"  {kind}: {', '.join(names) or 'none'}"))
        if not yes:
            self.stdout.write(
                "Revoke and change what was revoked or changed since then, then run this again "
                "with --yes."
            )
            return
        tokens = suspension.confirm(actor=actor(), heads=map(heads_of_log, logs))
        self.stdout.write(f"confirmed: {tokens} tokens are valid again, and people may log in")
