"""``manage.py create_enrolment_key PROJECT``: print a key that enrols a number of hosts."""

from argparse import ArgumentParser
from typing import Any

from projects.enrolment.codes import enrolment_key_create
from projects.management.naming import actor, project_named
from projects.management.refusals import RefusingCommand


class Command(RefusingCommand):
    help = (
        "Print a key with which a number of hosts enrol themselves for a time, each under its own "
        "name: for images and cloud-init. The admin's enrolment codes withdraw it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument("--hosts", type=int, required=True, help="how many hosts it serves")
        parser.add_argument(
            "--hours", type=float, default=24.0, help="hours until it expires (default: 24)"
        )
        parser.add_argument(
            "--label", action="append", default=[], help="label of its hosts; can be repeated"
        )

    def handle(
        self, *, project: str, hosts: int, hours: float, label: list[str], **_options: Any
    ) -> None:
        _, key = enrolment_key_create(
            project=project_named(project),
            hosts=hosts,
            hours=hours,
            labels=" ".join(label),
            actor=actor(),
        )
        self.stdout.write(key)
