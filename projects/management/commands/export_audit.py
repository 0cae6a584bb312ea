"""manage.py export_audit."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from projects.audit_log import audit
from projects.audit_proof import audit_export, chains
from projects.models import Project


class Command(BaseCommand):
    """Writes the audit log to stdout."""

    help = "Export the audit log as JSON lines: every row in the order of its chain, then the signed marks. The export is audited itself."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """--project NAME."""
        parser.add_argument("--project", default=None, help="only this one (default: all, also deleted ones)")

    def handle(self, *, project: str | None, **_options: Any) -> None:
        """One JSON object per line."""
        wanted = chains()
        if project is not None:
            row = Project.objects.filter(name=project).first()
            if row is None:
                raise CommandError(f"there is no project {project!r}")
            wanted = [row.id]
        for project_id in wanted:
            audit("operator", "audit.export", (project_id, None, None))
        for line in audit_export(wanted):
            self.stdout.write(json.dumps(line, separators=(",", ":")))
