"""manage.py set_secret."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from projects.models import Controller, Project, Secret
from projects.secret_store import MIN_MASKED_BYTES, Terms, UnusableValue, secret_delete, secret_set

ACTOR = "operator"


class Command(BaseCommand):
    """Stores, replaces or deletes a secret that callers name and never see."""

    help = (
        "Store or replace a secret of a project. Its value is asked for, or read from standard input if that is no terminal; it is never an"
        " argument, which other users of the machine could see."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """PROJECT NAME, and where it may be typed."""
        parser.add_argument("project", help="name of the project")
        parser.add_argument("name", help="what callers call it: letters, digits, hyphens and underscores")
        where = parser.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "--controller", action="append", default=[], dest="controllers", metavar="NAME", help="may be typed on this one; may repeat"
        )
        where.add_argument("--any-controller", action="store_true", help="may be typed on every controller of the project")
        where.add_argument("--delete", action="store_true", help="delete it instead")
        parser.add_argument(
            "--command",
            action="append",
            default=[],
            dest="commands",
            metavar="PROGRAM",
            help="only into sessions that run nothing but this, such as sudo; may repeat (default: any session)",
        )
        parser.add_argument("--may-echo", action="store_true", help="may be typed although the terminal is not asking for a secret")

    def handle(self, *, project: str, name: str, delete: bool, **options: Any) -> None:
        """Says what was done, never the value."""
        row = Project.objects.filter(name=project).first()
        if row is None:
            raise CommandError(f"there is no project {project!r}; create it with create_project")
        if delete:
            self._delete(row, name)
            return
        terms = Terms(
            any_controller=options["any_controller"],
            controllers=_controllers(row, options["controllers"]),
            allowed_commands=options["commands"],
            may_echo=options["may_echo"],
        )
        value = _read_value(name)
        try:
            secret_set(project=row, name=name, value=value, terms=terms, actor=ACTOR)
        except (UnusableValue, ValidationError) as error:
            raise CommandError("; ".join(error.messages) if isinstance(error, ValidationError) else str(error)) from None
        self.stdout.write(f"secret {name} of {project} is set")
        if len(value.encode()) < MIN_MASKED_BYTES:
            self.stderr.write(f"it is shorter than {MIN_MASKED_BYTES} bytes, so output that shows it will not be masked")

    def _delete(self, project: Project, name: str) -> None:
        secret = Secret.objects.filter(project=project, name=name).first()
        if secret is None:
            raise CommandError(f"there is no secret {name!r} in {project.name}")
        secret_delete(secret, actor=ACTOR)
        self.stdout.write(f"secret {name} of {project.name} is deleted")


def _controllers(project: Project, names: list[str]) -> list[Controller]:
    found = {controller.name: controller for controller in Controller.objects.filter(project=project, name__in=names)}
    if missing := sorted(set(names) - set(found)):
        raise CommandError(f"there is no controller {', '.join(missing)} in {project.name}")
    return list(found.values())


def _read_value(name: str) -> str:
    """Without the line end that ends it, which Enter stands for when it is typed."""
    if not sys.stdin.isatty():
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    value = getpass.getpass(f"Value of {name}: ")
    if getpass.getpass("Again: ") != value:
        raise CommandError("the two are not the same")
    return value
