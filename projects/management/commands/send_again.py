"""``manage.py send_again PROJECT``: try the dead letters of a project for another day."""

from argparse import ArgumentParser

from projects.attention.messages import send_again
from projects.management.naming import actor, project_named, targets_of
from projects.management.refusals import RefusingCommand
from projects.models import AttentionMessage


class Command(RefusingCommand):
    help = "Send the messages again that no target of a project has received."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", help="name of the project")
        parser.add_argument("--target", default="", help="only messages to this target")

    def handle(self, *, project: str, target: str, **_options: object) -> None:
        targets = targets_of(project_named(project), target)
        dead = AttentionMessage.objects.filter(target__in=targets, dead_at__isnull=False)
        sent = [send_again(message, actor=actor()) for message in dead.select_related("target")]
        self.stdout.write(f"messages that are sent again: {sum(sent)}")
