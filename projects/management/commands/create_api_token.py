"""``manage.py create_api_token PROJECT``: make an API token and print it once."""

from argparse import ArgumentParser
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils import timezone

from projects.accounts.authentication import AGENT_SCOPES, SCOPES
from projects.accounts.credentials import api_token_create
from projects.accounts.toolsets import TOOLSETS
from projects.management.naming import actor, project_named
from projects.management.refusals import RefusingCommand, invalid
from projects.models import ApprovalPolicy

MAX_DAYS: Final = 36_500


class Command(RefusingCommand):
    help = "Create an API token of a project. The token is printed once; only its digest is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument(
            "--name",
            default="agent",
            help="name of the token in audit rows (default: agent)",
        )
        parser.add_argument(
            "--scope",
            action="append",
            choices=SCOPES,
            dest="scopes",
            help=f"scope of the token; may repeat (default: {', '.join(AGENT_SCOPES)})",
        )
        parser.add_argument(
            "--toolset",
            action="append",
            choices=tuple(TOOLSETS),
            dest="toolsets",
            help="show only these tools; may repeat (default: every tool)",
        )
        parser.add_argument(
            "--starts-per-minute",
            type=int,
            help="most sessions it may start (default: HOLDLINE_STARTS_PER_MINUTE; 0: any number)",
        )
        parser.add_argument(
            "--input-bytes-per-minute",
            type=int,
            help="most bytes it may type (default: HOLDLINE_INPUT_BYTES_PER_MINUTE; 0: any number)",
        )
        parser.add_argument(
            "--days", type=int, default=None, help="expires after this many days (default: never)"
        )

        parser.add_argument(
            "--approvals",
            choices=ApprovalPolicy.values,
            default=ApprovalPolicy.AUTO.value,
            help="calls that wait for a person: none, risky ones, all (default: the project's)",
        )

    def handle(self, *, project: str, name: str, days: int | None, **options: Any) -> None:
        _, token = api_token_create(
            project=project_named(project),
            name=name,
            scopes=options["scopes"] or AGENT_SCOPES,
            toolsets=options["toolsets"] or (),
            expires_at=_end_after(days),
            starts_per_minute=options["starts_per_minute"],
            input_bytes_per_minute=options["input_bytes_per_minute"],
            approvals=options["approvals"],
            actor=actor(),
        )
        self.stdout.write(token)


def _end_after(days: int | None) -> datetime | None:
    if days is None:
        return None
    if not 1 <= days <= MAX_DAYS:
        raise invalid(f"--days: a token is valid for 1 to {MAX_DAYS} days")
    return timezone.now() + timedelta(days=days)
