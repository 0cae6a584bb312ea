"""Agent runs on a stack: their submission, and their rows.

Run as a program it submits the runs that it reads, one JSON object a line, and prints their ids.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.support.management import manage
from tests.support.stack import PROJECT_ROOT, Stack

RUN_SECONDS = 120.0
_RUN = (
    "state",
    "stop_reason",
    "report",
    "is_successful",
    "nudged_at_step",
    "interruptions",
    "input_tokens",
    "output_tokens",
    "cost_cents",
    "worked_seconds",
)
_STEP = ("number", "text", "calls", "results", "said_before", "is_complete", "sealed", "cost_cents")
_APPROVAL = ("id", "tool", "risk", "risk_reason", "answer", "reason")


def submitted(stack: Stack, task: str, *options: str) -> str:
    """Submit a run without following it, and return its id."""
    done = manage(stack, "run_agent", "--project", "first", "--detach", *options, task)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Submitter:
    """Submits runs to a stack from one process beside its server.

    A team's own service would do the same.
    """

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.agents.commands"],
            cwd=PROJECT_ROOT,
            env={**stack.server_environment(), "DJANGO_SETTINGS_MODULE": "config.settings.base"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def submit(self, model: str, task: str = "the task of the test", **limits: Any) -> "RunRows":
        """Submit a run and return its rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"task": task, "model": model, **limits}) + "\n")
        self._process.stdin.flush()
        return RunRows(self._stack, self._process.stdout.readline().strip())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(RUN_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()


@contextmanager
def submitter(stack: Stack) -> Iterator[Submitter]:
    """A submitter that is closed after the block."""
    process = Submitter(stack)
    try:
        yield process
    finally:
        process.close()


class RunRows:
    """The rows of one run, read from outside the server."""

    def __init__(self, stack: Stack, run_id: str) -> None:
        self.run_id = run_id
        self._database, self._run = stack.database, run_id.replace("-", "")

    def _rows(
        self, table: str, key: str, columns: Sequence[str], order: str = ""
    ) -> list[dict[str, Any]]:
        # SQLite stores a UUID without hyphens, PostgreSQL shows it with them.
        query = (
            f"SELECT {', '.join(columns)} FROM {table} WHERE REPLACE(CAST({key} AS TEXT), "
            f"'-', '') = ? {order}"
        )
        return [
            dict(zip(columns, row, strict=True)) for row in self._database.rows(query, self._run)
        ]

    @property
    def run(self) -> dict[str, Any]:
        return self._rows("agent_agentrun", "id", _RUN)[0]

    @property
    def end(self) -> tuple[str, str]:
        return self.run["state"], self.run["stop_reason"]

    @property
    def is_over(self) -> bool:
        return self.run["state"] in {"finished", "failed", "stopped"}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The steps in order, with their calls and results decoded from JSON."""
        rows = self._rows("agent_agentstep", "run_id", _STEP, "ORDER BY number")
        return [
            {**row, **{name: json.loads(row[name]) for name in ("calls", "results", "said_before")}}
            for row in rows
        ]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The bodies of all results, in order."""
        return [result["body"] for step in self.steps for result in step["results"]]

    @property
    def approvals(self) -> Sequence[dict[str, Any]]:
        """The questions that the run has asked, oldest first."""
        return self._rows("projects_approval", "SUBSTR(asked_by, 7)", _APPROVAL, "ORDER BY id")


def _submit_lines() -> None:
    from agent import services
    from projects.models import Project

    project = Project.objects.get(name="first")
    for line in sys.stdin:
        run = services.run_submit(project=project, actor="test", **json.loads(line))
        sys.stdout.write(f"{run.id}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    import django

    django.setup()
    _submit_lines()
