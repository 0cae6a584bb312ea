"""``manage.py answer_approval``: says yes or no to what a run asks."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agent import services
from agent.management.naming import actor, refusals
from agent.models import AgentApproval
from agent.rendering import approval_line
from agent.run_data import approval_data
from projects.management.refusals import EXIT_REFUSED


class Command(BaseCommand):
    """Without an id: what is waiting."""

    help = "List what runs ask, or answer one of it"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """ID, --approve or --deny, --reason; --json for the list."""
        parser.add_argument("id", nargs="?", type=int)
        answer = parser.add_mutually_exclusive_group()
        answer.add_argument("--approve", action="store_true")
        answer.add_argument("--deny", action="store_true")
        parser.add_argument("--reason", default="", help="told to the model with a denial")
        parser.add_argument("--json", action="store_true", help="list what is waiting as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Answers, or lists."""
        if options["id"] is None:
            self._list(is_json=options["json"])
            return
        if not (options["approve"] or options["deny"]):
            raise CommandError("say --approve or --deny", returncode=EXIT_REFUSED)
        with refusals():
            is_first = services.approval_answer(
                approval_id=options["id"], is_approved=options["approve"], actor=actor(), reason=options["reason"]
            )
        self.stdout.write("answered" if is_first else "somebody answered before")

    def _list(self, *, is_json: bool) -> None:
        waiting = AgentApproval.objects.filter(answer=AgentApproval.Answer.PENDING, run__ended_at__isnull=True)
        if is_json:
            self.stdout.write(json.dumps([approval_data(approval) for approval in waiting], default=str, indent=2))
            return
        for approval in waiting:
            self.stdout.write(f"{approval_line(approval).text} (run {approval.run_id})")
