"""``manage.py approve PROJECT/NAME``: let in a host that enrolled itself."""

from argparse import ArgumentParser
from typing import Any

from projects.enrolment.codes import controller_approve
from projects.management.naming import actor, controller_at
from projects.management.refusals import RefusingCommand


class Command(RefusingCommand):
    help = (
        "Approve a controller that enrolled itself while HOLDLINE_ENROLMENT_APPROVAL was on. "
        "To reject it, use manage.py revoke."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("controller", help="PROJECT/NAME")

    def handle(self, *, controller: str, **_options: Any) -> None:
        # The host tries again by itself, at least every half minute.
        is_first = controller_approve(controller=controller_at(controller), actor=actor())
        self.stdout.write("approved" if is_first else "it was approved already")
