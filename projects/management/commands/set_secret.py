"""``manage.py set_secret PROJECT NAME``: store, replace or delete a secret of a project."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from controller_client.protocol.limits import MIN_MASKED_BYTES
from projects.management.naming import (
    actor,
    controller_named,
    controllers_of,
    project_named,
    secret_named,
)
from projects.management.refusals import RefusingCommand, invalid
from projects.management.standard_input import input_text
from projects.models import Project
from projects.secrets.store import UnusableValue, secret_delete, secret_set
from projects.secrets.terms import Terms, UnusableTerms


class Command(RefusingCommand):
    help = (
        "Store or replace a secret of a project. The command asks for the value, or reads it from "
        "standard input if that is not a terminal. The value is never an argument, which other "
        "users of the machine could see."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument(
            "name", help="name for callers: letters, digits, hyphens and underscores"
        )
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--controller",
            action="append",
            default=[],
            dest="controllers",
            metavar="NAME",
            help="may be typed on this controller; may repeat",
        )
        where.add_argument(
            "--any-controller",
            action="store_true",
            help="may be typed on every controller of the project",
        )
        where.add_argument("--delete", action="store_true", help="delete the secret")
        parser.add_argument(
            "--command",
            action="append",
            default=[],
            dest="commands",
            metavar="PROGRAM",
            help=(
                "may be typed only while this program reads, started by itself: a name such as "
                "sudo, an absolute path, or a whole command line; may repeat (default: any program)"
            ),
        )
        parser.add_argument(
            "--may-echo",
            action="store_true",
            help="the programs of --command may read it even if the terminal shows it",
        )

    def handle(self, *, project: str, name: str, delete: bool, **options: Any) -> None:
        row = project_named(project)
        if delete:
            self._delete(row, name)
            return
        terms = Terms(
            any_controller=options["any_controller"],
            controllers=[
                controller_named(controllers_of(row), each).id
                for each in dict.fromkeys(options["controllers"])
            ],
            commands=tuple(options["commands"]),
            may_echo=options["may_echo"],
        )
        try:
            terms.check()
            value = _read_value(name)
            secret_set(project=row, name=name, value=value, terms=terms, actor=actor())
        except (UnusableTerms, UnusableValue) as error:
            raise invalid(str(error)) from None
        self.stdout.write(f"secret {name} of {project} is set")
        for warning in terms.warnings():
            self.stderr.write(warning)
        if len(value.encode()) < MIN_MASKED_BYTES:
            self.stderr.write(
                f"the value is shorter than {MIN_MASKED_BYTES} bytes, so it will not be masked in "
                "output"
            )

    def _delete(self, project: Project, name: str) -> None:
        secret_delete(secret_named(project, name), actor=actor())
        self.stdout.write(f"secret {name} of {project.name} is deleted")


def _read_value(name: str) -> str:
    # The line end after the value is not part of it; on a terminal, Enter makes none.
    if not sys.stdin.isatty():
        return input_text().removesuffix("\n").removesuffix("\r")
    value = getpass.getpass(f"Value of {name}: ")
    if getpass.getpass("Again: ") != value:
        raise invalid("the two values differ")
    return value
