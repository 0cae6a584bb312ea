"""``manage.py send_test_event PROJECT``: send a message to the project's targets, now."""

import asyncio
from argparse import ArgumentParser

from django.core.management.base import CommandError

from projects.attention.messages import letter_of
from projects.attention.sending import SendResult, send
from projects.attention.telling import message_of
from projects.management.naming import project_named, targets_of
from projects.management.refusals import RefusingCommand
from projects.models import AttentionMessage, AttentionTarget
from projects.storage import clock


class Command(RefusingCommand):
    help = "Send a test to the targets of a project, and say what each of them answered."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument("--target", default="", help="only the target of this name")

    def handle(self, *, project: str, target: str, **_options: object) -> None:
        targets = targets_of(project_named(project), target)
        outcomes = {row.name: _send(row) for row in targets}
        for name, outcome in outcomes.items():
            self.stdout.write(f"{name}: {outcome.error or 'received'}")
        if any(outcome.error for outcome in outcomes.values()):
            raise CommandError("not every target has received the test")


def _send(target: AttentionTarget) -> SendResult:
    message = message_of(target, "test", [])
    # Stored without being due: the worker must not send it as well.
    message.due_at = None
    message.save(force_insert=True)
    letter = letter_of(message)
    outcome = asyncio.run(send(letter))
    ends = {"dead_at": clock.now()} if outcome.error else {"sent_at": clock.now()}
    AttentionMessage.objects.filter(id=message.id).update(
        attempts=1, last_error=outcome.error, **ends
    )
    return outcome
