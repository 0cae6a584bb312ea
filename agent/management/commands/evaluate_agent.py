"""``manage.py evaluate_agent``: lets a model do the tasks and prints a table."""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from agent.evaluation import PLAY, Score, evaluate_all, load_tasks, table
from projects.models import Project


class Command(BaseCommand):
    """Ends with 1 unless every check succeeded. Tasks act on a real host: give them one that nobody needs."""

    help = "Evaluate a model on tasks with real programs. Only on a host that nobody needs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """TASK..., --project, --model, --controller, --at-once."""
        parser.add_argument("tasks", nargs="*", help="names of tasks (default: all)")
        parser.add_argument("--project", required=True)
        parser.add_argument("--model", default=PLAY, help=f"openai:NAME, anthropic:NAME, or {PLAY}: the tasks' own answers (default)")
        parser.add_argument("--controller", default=None)
        parser.add_argument("--directory", type=Path, default=Path(settings.BASE_DIR) / "benchmarks" / "agent_tasks")
        parser.add_argument("--at-once", type=int, default=1, help="tasks at once; the project's limit of sessions has to allow it")

    def handle(self, *, tasks: list[str], project: str, model: str, controller: str | None, **options: Any) -> None:
        """Prints each result as it comes, and the table."""
        row = Project.objects.filter(name=project).first()
        if row is None:
            raise CommandError(f"there is no project {project!r}")
        try:
            wanted = load_tasks(options["directory"], tasks)
        except KeyError as missing:
            raise CommandError(f"there is no task {missing}") from None
        evaluation = evaluate_all(row, wanted, model=model, controller=controller, at_once=options["at_once"], on_score=self._tell)
        scores = asyncio.run(evaluation)
        self.stdout.write(f"\nModel: {model}\n\n{table(scores)}")
        if not all(score.is_right for score in scores):
            raise SystemExit(1)

    def _tell(self, score: Score) -> None:
        verdict = "right" if score.is_right else f"wrong ({score.detail.strip() or 'the check failed'})"
        self.stderr.write(f"{score.name}: {verdict}, {score.end}, run {score.run_id}")
