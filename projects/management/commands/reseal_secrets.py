"""``manage.py reseal_secrets``: the step after the server got a new encryption key."""

from typing import Any

from django.core.management.base import CommandError

from projects.audit.marks import marks_resign
from projects.management.refusals import RefusingCommand
from projects.secrets.store import UnreadableSecret, secrets_reseal


class Command(RefusingCommand):
    help = (
        "Encrypt all encrypted values again, and sign the marks of the audit log again, with the "
        "first key of HOLDLINE_ENCRYPTION_KEYS. To change the key: put the new key before the old "
        "one, restart every server process, run this, and remove the old key."
    )

    def handle(self, **_options: Any) -> None:
        try:
            secrets, others = secrets_reseal()
        except UnreadableSecret as error:
            raise CommandError(str(error)) from None
        marks, foreign = marks_resign()
        self.stdout.write(
            f"{secrets} secrets and {others} other values are now encrypted under the newest key"
        )
        self.stdout.write(f"{marks} marks of the audit log are signed with the newest key")
        if foreign:
            self.stderr.write(
                f"{foreign} marks of the audit log were signed with none of the keys and stay so; "
                "see manage.py verify_audit"
            )
