"""manage.py create_enrolment_code."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from projects.enrolment import CODE_MINUTES, enrolment_code_create
from projects.models import Project


class Command(BaseCommand):
    """Makes a code with which one host enrols itself, and shows it once."""

    help = "Print a code with which one host becomes a controller: holdline-controller enroll --server URL --code CODE. It works once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """PROJECT NAME, --minutes, --replace."""
        parser.add_argument("project", help="name of the project")
        parser.add_argument("name", help="name of the host; letters, digits, hyphens and underscores; unique in its project")
        parser.add_argument("--minutes", type=float, default=CODE_MINUTES, help="how long it is good for (default: %(default)g)")
        parser.add_argument(
            "--replace", action="store_true", help="the controller exists: its credentials are revoked when the code is used"
        )

    def handle(self, *, project: str, name: str, minutes: float, replace: bool, **_options: Any) -> None:
        """Prints the code."""
        row = Project.objects.filter(name=project).first()
        if row is None:
            raise CommandError(f"there is no project {project!r}; create it with create_project")
        try:
            _, code = enrolment_code_create(project=row, name=name, minutes=minutes, is_replacement=replace)
        except ValueError as error:
            raise CommandError(f"{error}; --replace is for hosts that exist") from None
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from None
        self.stdout.write(code)
