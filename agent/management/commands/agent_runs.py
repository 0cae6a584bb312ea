"""``manage.py agent_runs``: lists runs, or shows one with all that it said, did and asked."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db.models import Count

from agent.console import Console
from agent.management.naming import project_named, refusals, run_named
from agent.models import AgentRun
from agent.rendering import listed_line, whole_run
from agent.run_data import run_data, transcript_data


class Command(BaseCommand):
    """Newest first. For scripts: --json."""

    help = "List the runs of models, or show one"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """RUN, or --project, --state, --limit; --json."""
        parser.add_argument("run", nargs="?", help="show this one; the beginning of its id will do")
        parser.add_argument("--project", help="only runs of this project")
        parser.add_argument("--state", action="append", choices=AgentRun.State.values, dest="states", help="only runs in it; may repeat")
        parser.add_argument("--limit", type=int, default=50)
        parser.add_argument("--json", action="store_true")

    def handle(self, *, run: str | None, **options: Any) -> None:
        """Shows or lists."""
        with refusals():
            if run is not None:
                self._show(run, is_json=options["json"])
            else:
                self._list(**options)

    def _list(self, **options: Any) -> None:
        runs = AgentRun.objects.select_related("project").annotate(steps_so_far=Count("steps")).order_by("-created_at")
        if options["project"]:
            runs = runs.filter(project=project_named(options["project"]))
        if options["states"]:
            runs = runs.filter(state__in=options["states"])
        found = list(runs[: max(0, options["limit"])])
        if options["json"]:
            self._write_json([{**run_data(one), "steps": one.steps_so_far} for one in found])
            return
        for one in found:
            self.stdout.write(listed_line(one, steps=one.steps_so_far))

    def _show(self, named: str, *, is_json: bool) -> None:
        run = AgentRun.objects.select_related("project").get(id=run_named(named))
        steps, approvals = list(run.steps.order_by("number")), list(run.approval_requests.order_by("id"))
        if is_json:
            self._write_json(transcript_data(run, steps, approvals))
            return
        console = Console(sys.stdout)
        for line in whole_run(run, steps, approvals):
            console.write(line)
        console.close()

    def _write_json(self, data: Any) -> None:
        self.stdout.write(json.dumps(data, default=str, indent=2))
