"""``manage.py answer_approval [ID]``: answer a pending approval, or list all of them.

The whole call is printed before it is answered.
"""

import json
from argparse import ArgumentParser
from typing import Any

from agent.views.rendering import exact_lines, question_lines
from agent.views.run_data import approval_data
from projects.admin.parts.display import visible
from projects.errors.access import ApprovalNotFound
from projects.management.naming import actor
from projects.management.refusals import RefusingCommand, invalid
from projects.models import Approval
from projects.sessions.approvals.answering import approval_answer
from projects.storage import clock


class Command(RefusingCommand):
    help = "List pending approvals, or answer one"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "id", nargs="?", type=int, help="id of the approval (default: list them)"
        )
        answer = parser.add_mutually_exclusive_group()
        answer.add_argument("--approve", action="store_true", help="let the call happen, once")
        answer.add_argument("--deny", action="store_true", help="refuse the call")
        parser.add_argument("--reason", default="", help="words to the caller with --deny")
        parser.add_argument("--json", action="store_true", help="list pending approvals as JSON")

    def handle(self, *_args: Any, **options: Any) -> None:
        if options["id"] is None:
            if options["approve"] or options["deny"]:
                raise invalid("name the approval", "Without an id, this command lists all of them")
            self._list(is_json=options["json"])
            return
        asked = Approval.objects.select_related("project").filter(id=options["id"]).first()
        if asked is None:
            raise ApprovalNotFound(options["id"])
        for line in exact_lines(asked):
            self.stdout.write(line)
        # What is answered has to be on the terminal by then, also if the answer takes its time.
        self.stdout.flush()
        if not (options["approve"] or options["deny"]):
            raise invalid("there is no answer", "Add --approve or --deny")
        is_first = approval_answer(
            approval_id=options["id"],
            is_approved=options["approve"],
            actor=actor(),
            reason=options["reason"],
        )
        self.stdout.write("answered" if is_first else "it is over: answered, expired or withdrawn")

    def _list(self, *, is_json: bool) -> None:
        waiting = Approval.objects.filter(answer=Approval.Answer.PENDING)
        waiting = waiting.exclude(expires_at__lte=clock.approvals_now())
        if is_json:
            self.stdout.write(
                json.dumps([approval_data(approval) for approval in waiting], default=str, indent=2)
            )
            return
        for approval in waiting:
            call, *details = question_lines(approval)
            self.stdout.write(f"{call} ({visible(approval.asked_by)})")
            for detail in details:
                self.stdout.write(detail)
