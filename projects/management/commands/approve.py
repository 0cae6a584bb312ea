"""manage.py approve."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from projects.enrolment import controller_approve
from projects.models import Controller


class Command(BaseCommand):
    """Lets in a host that enrolled itself."""

    help = "Approve a controller that enrolled itself where HOLDLINE_ENROLMENT_APPROVAL is on. manage.py revoke turns it away."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """PROJECT/NAME."""
        parser.add_argument("controller", help="PROJECT/NAME")

    def handle(self, *, controller: str, **_options: Any) -> None:
        """It connects by itself within half a minute."""
        project, _, name = controller.partition("/")
        row = Controller.objects.filter(project__name=project, name=name, revoked_at__isnull=True).first()
        if row is None:
            raise CommandError("there is no such controller")
        self.stdout.write("approved" if controller_approve(controller=row, actor="operator") else "it was approved already")
