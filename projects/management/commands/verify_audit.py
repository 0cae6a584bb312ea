"""manage.py verify_audit."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from projects.audit_log import SERVER
from projects.audit_proof import audit_verify, chains
from projects.models import Project


class Command(BaseCommand):
    """Says whether the audit log is whole; exit code 1 if it is not."""

    help = "Verify the audit log: the chain of hashes of each project, and the heads that were signed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--project NAME."""
        parser.add_argument("--project", default=None, help="only this one (default: all, also deleted ones)")

    def handle(self, *, project: str | None, **_options: Any) -> None:
        """One line per chain, and one per problem."""
        names = {SERVER: "(server)", **dict(Project.objects.values_list("id", "name"))}
        wanted = [each for each in chains() if project is None or names.get(each) == project]
        if project is not None and not wanted:
            raise CommandError(f"there is no audit log of a project {project!r}")
        verdicts = [audit_verify(each) for each in wanted]
        for verdict in verdicts:
            name = names.get(verdict.project_id, str(verdict.project_id))
            state = "BROKEN" if verdict.problems else "whole"
            self.stdout.write(f"{name}: {state}, {verdict.rows} rows, {verdict.expired} expired, {verdict.signed} signed heads")
            for problem in verdict.problems:
                self.stdout.write(f"  {problem}")
        broken = sum(bool(verdict.problems) for verdict in verdicts)
        if broken:
            raise CommandError(f"the audit log of {broken} of {len(verdicts)} projects is not what was written")
