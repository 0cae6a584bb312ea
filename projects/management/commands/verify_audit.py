"""``manage.py verify_audit``: verify the audit log; exits with 1 if a row was changed."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from projects.audit.log import SERVER
from projects.audit.marks import heads_repeated, joined
from projects.audit.proof import audit_verify, chains
from projects.audit.unsigned import NO_SIGNED_HEAD
from projects.management.naming import unknown
from projects.management.refusals import RefusingCommand
from projects.management.signed_heads import heads_of_log
from projects.models import Project


class Command(RefusingCommand):
    help = "Verify the audit log: the chain of hashes of each project, and the signed heads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--project", default=None, help="only this project (default: all, even deleted ones)"
        )
        parser.add_argument(
            "--log",
            type=Path,
            action="append",
            default=[],
            dest="logs",
            metavar="FILE",
            help=(
                "a server log that was kept elsewhere: every head that it reports as signed has to "
                "be in the database; may repeat"
            ),
        )

    def handle(self, *, project: str | None, logs: list[Path], **_options: Any) -> None:
        known = joined(heads_repeated(), *map(heads_of_log, logs))
        names = {SERVER: "(server)", **dict(Project.objects.values_list("id", "name"))}
        wanted = [each for each in chains(known) if project is None or names.get(each) == project]
        if project is not None and not wanted:
            there_are = [names[each] for each in chains(known) if each in names]
            raise unknown(
                "project",
                project,
                there_are,
                code="PROJECT_NOT_FOUND",
                remedy="Without --project, all projects are verified",
            )
        verdicts = [audit_verify(each, known) for each in wanted]
        for verdict in verdicts:
            name = names.get(verdict.project_id, str(verdict.project_id))
            state = "unsigned" if verdict.is_unsigned else "whole"
            state = "BROKEN" if verdict.problems else state
            self.stdout.write(
                f"{name}: {state}, {verdict.rows} rows, {verdict.expired} expired, "
                f"{verdict.signed} signed heads"
                + (f", {n} foreign marks acknowledged" if (n := verdict.acknowledged) else "")
                + (f", {n} signed heads lost by a restore" if (n := verdict.lost) else "")
            )
            for problem in verdict.problems:
                self.stdout.write(f"  {problem}")
            if verdict.is_unsigned and not verdict.problems:
                self.stdout.write(
                    f"  warning: no head is signed, so nobody would find that the rows were "
                    f"rewritten ({NO_SIGNED_HEAD}). Verify with a log of the server (--log)"
                )
        broken = sum(bool(verdict.problems) for verdict in verdicts)
        if broken:
            raise CommandError(
                f"the audit log of {broken} of {len(verdicts)} projects is not what was written"
            )
