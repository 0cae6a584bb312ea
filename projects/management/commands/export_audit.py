"""``manage.py export_audit``: write the audit log to stdout as JSON lines."""

import json
from argparse import ArgumentParser
from typing import Any

from projects.audit.log import audit
from projects.audit.proof import audit_export, chains
from projects.management.naming import actor, project_named
from projects.management.refusals import RefusingCommand


class Command(RefusingCommand):
    help = (
        "Export the audit log as JSON lines: every row in the order of its chain, then the signed "
        "marks. The export itself is audited, too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--project", default=None, help="only this project (default: all, even deleted ones)"
        )

    def handle(self, *, project: str | None, **_options: Any) -> None:
        wanted = chains() if project is None else [project_named(project).id]
        for project_id in wanted:
            audit(actor(), "audit.export", (project_id, None, None))
        for line in audit_export(wanted):
            self.stdout.write(json.dumps(line, separators=(",", ":")))
