"""``manage.py create_enrolment_code PROJECT NAME``: print a code that enrols one host."""

from argparse import ArgumentParser
from typing import Any

from projects.enrolment.codes import CODE_MINUTES, enrolment_code_create
from projects.management.naming import actor, controller_named, controllers_of, project_named
from projects.management.refusals import RefusingCommand, invalid


class Command(RefusingCommand):
    help = (
        "Print a code with which one host enrols itself, once: holdline-controller enroll "
        "--server URL --code CODE"
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
            "--minutes",
            type=float,
            default=CODE_MINUTES,
            help="minutes until the code expires (default: %(default)g)",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace a host that exists: using the code revokes the host's credentials",
        )

        parser.add_argument(
            "--label", action="append", default=[], help="label of the host; can be repeated"
        )

    def handle(
        self,
        *,
        project: str,
        name: str,
        minutes: float,
        replace: bool,
        label: list[str],
        **_options: Any,
    ) -> None:
        row = project_named(project)
        if replace:
            controller_named(controllers_of(row), name)
        try:
            _, code = enrolment_code_create(
                project=row,
                name=name,
                minutes=minutes,
                is_replacement=replace,
                labels=" ".join(label),
                actor=actor(),
            )
        except ValueError as error:
            raise invalid(str(error), "To replace the host, add --replace") from None
        self.stdout.write(code)
