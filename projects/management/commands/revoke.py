"""manage.py revoke."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from projects.models import ApiToken, Controller, ControllerCredential
from projects.revocation import api_token_revoke, controller_credential_revoke, controller_revoke

ACTOR = "operator"


class Command(BaseCommand):
    """Takes back a token, a credential or a controller."""

    help = "Revoke an API token or a credential by its key id (the part after hl_ or ctl_), or a controller as PROJECT/NAME."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """WHAT."""
        parser.add_argument("what", help="a key id of 16 digits, or PROJECT/NAME of a controller")

    def handle(self, *, what: str, **_options: Any) -> None:
        """Open connections and waiting calls end within seconds."""
        project, _, name = what.partition("/")
        if token := ApiToken.objects.filter(key_id=what).first():
            api_token_revoke(token=token, actor=ACTOR)
        elif credential := ControllerCredential.objects.select_related("controller").filter(key_id=what).first():
            controller_credential_revoke(credential=credential, actor=ACTOR)
        elif controller := Controller.objects.filter(project__name=project, name=name, revoked_at__isnull=True).first():
            controller_revoke(controller=controller, actor=ACTOR)
        else:
            raise CommandError("there is no such token, credential or controller")
        self.stdout.write("revoked")
