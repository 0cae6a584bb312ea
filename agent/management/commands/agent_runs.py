"""``manage.py agent_runs [RUN]``: list runs, newest first, or show one with its whole transcript.

Scripts use ``--json``.
"""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.db.models import Count

from agent.management.naming import run_named
from agent.models import AgentRun
from agent.runs.records import approvals_of
from agent.views.console import Console
from agent.views.rendering import listed_line, whole_run
from agent.views.run_data import run_data, transcript_data
from projects.management.naming import project_named
from projects.management.numbers import count
from projects.management.refusals import RefusingCommand


class Command(RefusingCommand):
    help = "List the runs of models, or show one"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "run", nargs="?", help="show this run; a unique prefix of its id is enough"
        )
        parser.add_argument("--project", help="only runs of this project")
        parser.add_argument(
            "--state",
            action="append",
            choices=AgentRun.State.values,
            dest="states",
            help="only runs in this state; may repeat",
        )
        parser.add_argument(
            "--limit", type=count, default=50, help="most runs to list (default: 50)"
        )
        parser.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *, run: str | None, **options: Any) -> None:
        if run is not None:
            self._show(run, is_json=options["json"])
        else:
            self._list(**options)

    def _list(self, **options: Any) -> None:
        runs = (
            AgentRun.objects.select_related("project")
            .annotate(steps_so_far=Count("steps"))
            .order_by("-created_at")
        )
        if options["project"]:
            runs = runs.filter(project=project_named(options["project"]))
        if options["states"]:
            runs = runs.filter(state__in=options["states"])
        found = list(runs[: options["limit"]])
        if options["json"]:
            self._write_json([{**run_data(one), "steps": one.steps_so_far} for one in found])
            return
        for one in found:
            self.stdout.write(listed_line(one, steps=one.steps_so_far))

    def _show(self, named: str, *, is_json: bool) -> None:
        run = AgentRun.objects.select_related("project").get(id=run_named(named))
        steps, approvals = (
            list(run.steps.order_by("number")),
            list(approvals_of(run.pk)),
        )
        if is_json:
            self._write_json(transcript_data(run, steps, approvals))
            return
        console = Console(sys.stdout)
        for line in whole_run(run, steps, approvals):
            console.write(line)
        console.close()

    def _write_json(self, data: Any) -> None:
        self.stdout.write(json.dumps(data, default=str, indent=2))
