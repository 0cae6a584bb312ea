"""manage.py reseal_secrets."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from projects.secret_store import UnreadableSecret, secrets_reseal


class Command(BaseCommand):
    """The second step of changing the encryption key."""

    help = (
        "Encrypt everything that is encrypted under the first key of HOLDLINE_ENCRYPTION_KEYS. Put a new key in front of the old"
        " one, restart the server, run this, and take the old key out."
    )

    def handle(self, **_options: Any) -> None:
        """Says how much it was."""
        try:
            secrets, commands = secrets_reseal()
        except UnreadableSecret as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{secrets} secrets and {commands} commands on their way are encrypted under the newest key")
