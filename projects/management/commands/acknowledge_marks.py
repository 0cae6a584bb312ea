"""``manage.py acknowledge_marks``: put on record that foreign marks of the audit log are known."""

from argparse import ArgumentParser
from typing import Any

from projects.audit.proof import chains, marks_acknowledge
from projects.management.naming import actor
from projects.management.refusals import RefusingCommand, invalid


class Command(RefusingCommand):
    help = (
        "Record in the audit log that you know of the marks that verify_audit calls not ours. They "
        "prove nothing then either; verify_audit counts them and no longer fails because of them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--reason", required=True, help="how they came about, for the record")

    def handle(self, *, reason: str, **_options: Any) -> None:
        if not reason.strip():
            raise invalid("--reason is empty", "Say how the marks came about")
        is_any = False
        for chain in chains():
            for one in marks_acknowledge(chain, actor=actor(), reason=reason):
                is_any = True
                self.stdout.write(
                    f"acknowledged in the chain of {chain}: the {one.kind} at row {one.seq}"
                )
        if not is_any:
            self.stdout.write("no mark had to be acknowledged")
