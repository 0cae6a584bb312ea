"""manage.py create_controller."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from projects.account_errors import CredentialLimitReached
from projects.authentication import controller_create, controller_credential_create
from projects.management.refusals import refusal
from projects.models import Controller, Project


class Command(BaseCommand):
    """Enrols a host, or gives an enrolled one another credential."""

    help = "Enrol a host in a project and print the credential for its daemon. It is printed once; only its digest is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """PROJECT NAME, --new-credential."""
        parser.add_argument("project", help="name of the project")
        parser.add_argument("name", help="name of the host; letters, digits, hyphens and underscores; unique in its project")
        parser.add_argument(
            "--new-credential", action="store_true", help="the host exists: add a credential, older ones stay valid until revoked"
        )

    @transaction.atomic
    def handle(self, *, project: str, name: str, new_credential: bool, **_options: Any) -> None:
        """Prints the credential, to be put into the daemon's credential file (mode 0600)."""
        row = Project.objects.filter(name=project).first()
        if row is None:
            raise CommandError(f"there is no project {project!r}; create it with create_project")
        existing = Controller.objects.filter(project=row, name=name, revoked_at__isnull=True).first()
        if existing is None and new_credential:
            raise CommandError(f"project {project!r} has no controller {name!r}")
        if existing is not None and not new_credential:
            raise CommandError(f"project {project!r} already has a controller {name!r}; add --new-credential for another credential")
        try:
            controller = existing or controller_create(project=row, name=name)
            _, credential = controller_credential_create(controller=controller)
        except CredentialLimitReached as error:
            raise refusal(error) from None
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
        self.stdout.write(credential)
