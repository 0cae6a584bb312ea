"""``manage.py`` of a stack's server, and the rows of its runs."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.stack import PROJECT_ROOT, Stack

RUN_SECONDS = 120.0
_RUN = ("state", "stop_reason", "report", "is_successful", "nudged_at_step", "interruptions", "input_tokens", "output_tokens")
_STEP = ("number", "text", "calls", "results", "said_before", "is_complete", "sealed")
_APPROVAL = ("id", "tool", "risk", "risk_reason", "answer", "reason")


def manage(stack: Stack, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a management command in the environment of the stack's server, without a terminal."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT_ROOT,
        env=stack.server_environment(**(environment or {})),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )


def submitted(stack: Stack, task: str, *options: str) -> str:
    """The id of a run that was only submitted."""
    done = manage(stack, "run_agent", "--project", "first", "--detach", *options, task)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class RunRows:
    """One run, read from outside."""

    def __init__(self, stack: Stack, run_id: str) -> None:
        self._database, self._run = stack.database, run_id.replace("-", "")

    def _rows(self, table: str, key: str, columns: Sequence[str], order: str = "") -> list[dict[str, Any]]:
        # Databases keep uuids in different forms.
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE REPLACE(CAST({key} AS TEXT), '-', '') = ? {order}"
        return [dict(zip(columns, row, strict=True)) for row in self._database.rows(query, self._run)]

    @property
    def run(self) -> dict[str, Any]:
        """The run's own row."""
        return self._rows("agent_agentrun", "id", _RUN)[0]

    @property
    def end(self) -> tuple[str, str]:
        """State and stop reason."""
        return self.run["state"], self.run["stop_reason"]

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.run["state"] in {"finished", "failed", "stopped"}

    @property
    def steps(self) -> list[dict[str, Any]]:
        """With calls and results as they were written."""
        rows = self._rows("agent_agentstep", "run_id", _STEP, "ORDER BY number")
        return [{**row, **{name: json.loads(row[name]) for name in ("calls", "results", "said_before")}} for row in rows]

    @property
    def results(self) -> list[dict[str, Any]]:
        """Bodies of all results, in order."""
        return [result["body"] for step in self.steps for result in step["results"]]

    @property
    def approvals(self) -> Sequence[dict[str, Any]]:
        """What it asked."""
        return self._rows("agent_agentapproval", "run_id", _APPROVAL, "ORDER BY id")
