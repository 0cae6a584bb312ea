"""``manage.py create_controller PROJECT NAME``: enrol a host and print its credential."""

from argparse import ArgumentParser
from typing import Any

from django.db import transaction

from projects.accounts.credentials import controller_create, controller_credential_create
from projects.management.naming import actor, controller_named, controllers_of, project_named
from projects.management.refusals import RefusingCommand, invalid


class Command(RefusingCommand):
    help = (
        "Enrol a host in a project and print the credential for its daemon. It is printed "
        "once; only its digest is stored."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument(
            "name",
            help=(
                "name of the host; letters, digits, hyphens and underscores; unique in its project"
            ),
        )
        parser.add_argument(
            "--new-credential",
            action="store_true",
            help="add a credential to a host that exists; older ones stay valid until revoked",
        )

    @transaction.atomic
    def handle(self, *, project: str, name: str, new_credential: bool, **_options: Any) -> str:
        row = project_named(project)
        controllers = controllers_of(row)
        existing = controller_named(controllers, name) if new_credential else None
        if not new_credential and controllers.filter(name=name).exists():
            raise invalid(
                f"project {project!r} already has a controller {name!r}",
                "For another credential, add --new-credential",
            )
        controller = existing or controller_create(project=row, name=name, actor=actor())
        _, credential = controller_credential_create(controller=controller, actor=actor())
        # Printed by Django, once this transaction has committed.
        return credential
