"""``manage.py send_test_event PROJECT``: send a message to the project's targets, now."""

from argparse import ArgumentParser

from django.core.management.base import CommandError

from projects.attention.trial import trial_send
from projects.management.naming import project_named, targets_of
from projects.management.refusals import RefusingCommand


class Command(RefusingCommand):
    help = "Send a test to the targets of a project, and say what each of them answered."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument("--target", help="only the target of this name")

    def handle(self, *, project: str, target: str | None, **_options: object) -> None:
        targets = targets_of(project_named(project), target)
        outcomes = {row.name: trial_send(row) for row in targets}
        for name, outcome in outcomes.items():
            self.stdout.write(f"{name}: {outcome.error or 'received'}")
        if any(outcome.error for outcome in outcomes.values()):
            raise CommandError("not every target has received the test")
