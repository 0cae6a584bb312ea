"""manage.py create_project."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from projects.audit_log import audit
from projects.models import Project


class Command(BaseCommand):
    """Creates a project."""

    help = "Create a project: a tenant with its own tokens, controllers and limits."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """NAME, --max-interactive-sessions N, --member USERNAME."""
        parser.add_argument("name", help="letters, digits, hyphens and underscores; unique")
        parser.add_argument(
            "--max-interactive-sessions", type=int, default=1, help="interactive sessions that may be active at once (default: 1)"
        )
        parser.add_argument(
            "--member", action="append", default=[], metavar="USERNAME", help="a user of the admin who belongs to it; may repeat"
        )

    @transaction.atomic
    def handle(self, *, name: str, max_interactive_sessions: int, member: list[str], **_options: Any) -> None:
        """Prints the project's id."""
        project = Project(name=name, max_interactive_sessions=max_interactive_sessions)
        try:
            project.full_clean()
        except Exception as error:
            raise CommandError(str(error)) from error
        project.save(force_insert=True)
        users = get_user_model().objects.filter(username__in=member)
        if missing := sorted(set(member) - set(users.values_list("username", flat=True))):
            raise CommandError(f"no such user: {', '.join(missing)}")
        project.members.set(users)
        audit("operator", "project.create", (project.id, None, None), {"name": name})
        self.stdout.write(str(project.id))
