"""``manage.py create_project NAME``: make a project and print its id."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from projects.audit.log import audit
from projects.management.naming import actor, unknown
from projects.management.refusals import RefusingCommand
from projects.models import ApprovalPolicy, Project


class Command(RefusingCommand):
    help = "Create a project: a tenant with its own tokens, controllers and limits."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="letters, digits, hyphens and underscores; unique")
        parser.add_argument(
            "--max-interactive-sessions",
            type=int,
            default=1,
            help="most interactive sessions at the same time (default: 1)",
        )
        parser.add_argument(
            "--default-lifetime",
            type=int,
            metavar="SECONDS",
            help="lifetime of an interactive session whose caller names none",
        )
        parser.add_argument(
            "--max-lifetime",
            type=int,
            metavar="SECONDS",
            help=(
                "the longest lifetime a caller may ask for (default: "
                "INTERACTIVE_CMD_TIMEOUT_SECONDS)"
            ),
        )
        parser.add_argument(
            "--member",
            action="append",
            default=[],
            metavar="USERNAME",
            help="a user of the admin who may see the project; may repeat",
        )

        parser.add_argument(
            "--approvals",
            choices=ApprovalPolicy.values,
            default=ApprovalPolicy.AUTO.value,
            help="calls that wait for a person: none, risky ones, all (default: auto)",
        )

    @transaction.atomic
    def handle(
        self,
        *,
        name: str,
        max_interactive_sessions: int,
        default_lifetime: int | None,
        max_lifetime: int | None,
        member: list[str],
        approvals: str,
        **_options: Any,
    ) -> str:
        project = Project(
            name=name,
            max_interactive_sessions=max_interactive_sessions,
            default_lifetime_seconds=default_lifetime,
            max_lifetime_seconds=max_lifetime,
            approvals=approvals,
        )
        project.full_clean()
        project.save(force_insert=True)
        users = get_user_model().objects.filter(username__in=member)
        if missing := sorted(set(member) - set(users.values_list("username", flat=True))):
            known = get_user_model().objects.values_list("username", flat=True)
            raise unknown(
                "user",
                missing[0],
                known,
                code="USER_NOT_FOUND",
                remedy="Add users in the admin",
            )
        project.members.set(users)
        audit(actor(), "project.create", (project.id, None, None), {"name": name})
        # Printed by Django, once this transaction has committed.
        return str(project.id)
