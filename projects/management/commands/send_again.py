"""``manage.py send_again PROJECT``: try the dead letters of a project for another day."""

from argparse import ArgumentParser
from contextlib import suppress

from projects.attention.messages import MOST_WAITING, TooManyWaiting, send_again
from projects.management.naming import actor, project_named, targets_of
from projects.management.refusals import RefusingCommand
from projects.models import AttentionMessage


class Command(RefusingCommand):
    help = "Send the messages again that no target of a project has received."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument("--target", help="only messages to this target")

    def handle(self, *, project: str, target: str | None, **_options: object) -> None:
        dead = AttentionMessage.objects.filter(dead_at__isnull=False).order_by("created_at")
        sent = left = 0
        for each in targets_of(project_named(project), target):
            letters = dead.filter(target=each).select_related("target")
            with suppress(TooManyWaiting):
                for letter in letters[:MOST_WAITING]:
                    sent += send_again(letter, actor=actor())
            left += letters.count()
        self.stdout.write(f"messages that are sent again: {sent}")
        if left:
            self.stdout.write(f"dead letters for which there is no room yet: {left}")
