"""The tasks models are judged by: their own answers do them, and their checks see it.

All of them with ``--long``.
"""

import os
import subprocess
from pathlib import Path

from agent.evaluation import Score, Task, load_tasks, table
from tests.support.management import manage
from tests.support.stack import PROJECT_ROOT, Stack

_TASKS = Path(PROJECT_ROOT) / "benchmarks" / "agent_tasks"
_AS_ROOT = ("apt_questions", "passwd_change")
_QUICK = ("hidden_pin", "python_repl", "sqlite_console")


def test_there_are_twenty_tasks_with_all_that_they_need() -> None:
    tasks = load_tasks(_TASKS)
    assert len(tasks) >= 20
    assert [
        task.name
        for task in tasks
        if not (task.play and task.check.strip() and task.task.strip() and task.title)
    ] == []


def test_no_check_succeeds_where_nothing_was_done(tmp_path: Path) -> None:
    """As the evaluation runs them, but without a host; what needs root, with root only."""

    def status(task: Task, script: str) -> int:
        place = tmp_path / task.name
        place.mkdir(mode=0o700, exist_ok=True)
        whole = f"set -e\nexport TASK_DIR={place}\ncd {place}\n{script}\n"
        return subprocess.run(
            ["bash", "-s"], input=whole, text=True, capture_output=True, check=False
        ).returncode

    tasks = [task for task in load_tasks(_TASKS) if os.geteuid() == 0 or task.name not in _AS_ROOT]
    assert [task.name for task in tasks if status(task, task.setup) != 0] == []
    assert [task.name for task in tasks if status(task, task.check) == 0] == []


def test_a_table_has_a_row_for_each_task_and_a_sum() -> None:
    scores = [
        Score(name="one", end="finished: done", is_right=True, tokens=5),
        Score(name="two", end="failed: max_steps", tokens=7),
    ]
    rows = table(scores).split("\n")
    assert rows[2].startswith("| one | yes | finished: done |")
    assert rows[-1] == "| **1 of 2** | | | | 12 | 0.000 | |"


def test_the_tasks_own_answers_do_them(stack: Stack, is_long: bool) -> None:
    names = () if is_long and os.geteuid() == 0 else _QUICK
    done = manage(
        stack,
        "evaluate_agent",
        "--project",
        "first",
        "--at-once",
        "4",
        *names,
        environment={"HOLDLINE_AGENT_APPROVALS": "auto"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| yes |") == (len(names) or len(load_tasks(_TASKS)))


def test_a_check_is_not_fooled_by_a_model_that_says_it_is_done(
    stack: Stack, tmp_path: Path
) -> None:
    lazy = (_TASKS / "hidden_pin.toml").read_text().split("[[play]]")[0]
    (tmp_path / "lazy.toml").write_text(f'{lazy}\n[[play]]\nrun = "true"\n')
    done = manage(
        stack, "evaluate_agent", "--project", "first", "--directory", str(tmp_path), "lazy"
    )
    assert done.returncode == 1
    assert "| lazy | no | finished: done |" in done.stdout
