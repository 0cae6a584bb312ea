"""``manage.py answer_approval``: says yes or no to what a run asks."""

import getpass
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agent import services
from agent.models import AgentApproval
from agent.rendering import approval_line
from projects.errors import ControllerActionError


class Command(BaseCommand):
    """Without an id: what is waiting."""

    help = "List what runs ask, or answer one of it"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """ID, --approve or --deny, --reason."""
        parser.add_argument("id", nargs="?", type=int)
        answer = parser.add_mutually_exclusive_group()
        answer.add_argument("--approve", action="store_true")
        answer.add_argument("--deny", action="store_true")
        parser.add_argument("--reason", default="", help="told to the model with a denial")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Answers, or lists."""
        if options["id"] is None:
            for approval in AgentApproval.objects.filter(answer=AgentApproval.Answer.PENDING, run__ended_at__isnull=True):
                self.stdout.write(f"{approval_line(approval).text} (run {approval.run_id})")
            return
        if not (options["approve"] or options["deny"]):
            raise CommandError("say --approve or --deny")
        try:
            is_first = services.approval_answer(
                approval_id=options["id"], is_approved=options["approve"], actor=f"cli:{getpass.getuser()}", reason=options["reason"]
            )
        except ControllerActionError as error:
            raise CommandError(str(error)) from None
        self.stdout.write("answered" if is_first else "somebody answered before")
