"""manage.py create_api_token."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from projects.authentication import AGENT_SCOPES, SCOPES, api_token_create
from projects.models import Project
from projects.tools.toolsets import TOOLSETS


class Command(BaseCommand):
    """Creates an API token and shows it once."""

    help = "Create an API token of a project. The token is printed once; only its digest is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """PROJECT, --name, --scope, --toolset, --days."""
        parser.add_argument("project", help="name of the project")
        parser.add_argument("--name", default="agent", help="what the token is for; shown in audit rows (default: agent)")
        parser.add_argument(
            "--scope", action="append", choices=SCOPES, dest="scopes", help=f"may repeat (default: {', '.join(AGENT_SCOPES)})"
        )
        parser.add_argument("--toolset", action="append", choices=tuple(TOOLSETS), dest="toolsets", help="may repeat (default: every tool)")
        parser.add_argument(
            "--starts-per-minute", type=int, help="sessions it may start (default: HOLDLINE_STARTS_PER_MINUTE; 0: any number)"
        )
        parser.add_argument(
            "--input-bytes-per-minute", type=int, help="bytes it may type (default: HOLDLINE_INPUT_BYTES_PER_MINUTE; 0: any number)"
        )
        parser.add_argument("--days", type=int, default=None, help="expires after this many days (default: never)")

    def handle(self, *, project: str, name: str, days: int | None, **options: Any) -> None:
        """Prints the token."""
        row = Project.objects.filter(name=project).first()
        if row is None:
            raise CommandError(f"there is no project {project!r}; create it with create_project")
        _, token = api_token_create(
            project=row,
            name=name,
            scopes=options["scopes"] or AGENT_SCOPES,
            toolsets=options["toolsets"] or (),
            expires_at=timezone.now() + timedelta(days=days) if days is not None else None,
            starts_per_minute=options["starts_per_minute"],
            input_bytes_per_minute=options["input_bytes_per_minute"],
        )
        self.stdout.write(token)
