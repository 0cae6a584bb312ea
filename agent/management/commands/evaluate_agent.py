"""``manage.py evaluate_agent``: let a model do tasks with real programs, and print a table.

Exits with 1 unless every check succeeded. The tasks change the host they run on.
"""

import asyncio
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings

from agent.evaluation import PLAY, Score, evaluate_all, load_tasks, table
from projects.management.naming import controller_named, controllers_of, project_named, unknown
from projects.management.numbers import count
from projects.management.refusals import RefusingCommand, refused


class Command(RefusingCommand):
    help = "Evaluate a model on tasks with real programs. Use a host that nobody needs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tasks", nargs="*", help="names of tasks (default: all)")
        parser.add_argument("--project", required=True)
        parser.add_argument(
            "--model",
            default=PLAY,
            help=f"openai:NAME, anthropic:NAME, or {PLAY}: canned answers (default)",
        )
        parser.add_argument("--controller", default=None)
        parser.add_argument(
            "--directory", type=Path, default=Path(settings.BASE_DIR) / "benchmarks" / "agent_tasks"
        )
        parser.add_argument(
            "--at-once",
            type=count,
            default=1,
            help="tasks at the same time; the project's session limit has to allow as many",
        )

    def handle(
        self, *, tasks: list[str], project: str, model: str, controller: str | None, **options: Any
    ) -> None:
        row = project_named(project)
        if controller is not None:
            controller_named(controllers_of(row), controller)
        try:
            wanted = load_tasks(options["directory"], tasks)
        except KeyError as missing:
            known = (task.name for task in load_tasks(options["directory"]))
            raise unknown(
                "task",
                missing.args[0],
                known,
                code="TASK_NOT_FOUND",
                remedy="Without names, all tasks are done",
            ) from None
        if not wanted:
            raise refused(
                f"there is no task in {options['directory']} (TASK_NOT_FOUND). Name a directory "
                "with files of tasks (*.toml) by --directory"
            )
        evaluation = evaluate_all(
            row,
            wanted,
            model=model,
            controller=controller,
            at_once=options["at_once"],
            on_score=self._tell,
        )
        scores = asyncio.run(evaluation)
        self.stdout.write(f"\nModel: {model}\n\n{table(scores)}")
        if not all(score.is_right for score in scores):
            raise SystemExit(1)

    def _tell(self, score: Score) -> None:
        verdict = (
            "right" if score.is_right else f"wrong ({score.detail.strip() or 'the check failed'})"
        )
        self.stderr.write(f"{score.name}: {verdict}, {score.end}, run {score.run_id}")
