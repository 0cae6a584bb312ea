"""Tasks to judge models by.

Each prepares a directory on a host, describes what to do there, and checks the outcome. A task is a
TOML file: ``title``, ``task``, ``setup`` and ``check`` (shell on the host, with ``TASK_DIR``; a
check succeeds with 0), limits, and ``play``: the answers of a model that knows the solution. The
model ``scripted:play`` gives these answers, so that the tasks themselves can be tested.
"""

import asyncio
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from agent import services, worker
from agent.llm.conversation import Answer, Call, Conversation, ModelClient, OfferedTool, OnText
from agent.models import AgentRun
from agent.runs.runner import client_for
from projects.accounts.authentication import AGENT_SCOPES, Caller
from projects.models import Project
from projects.storage.access import in_database
from projects.tools.registry import tool_named

PLAY: Final = "scripted:play"
MOST_WAITS: Final = 30
_SESSION: Final = re.compile(r'"session_id":"([0-9a-f-]{36})"')


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task. ``{dir}`` in ``task`` and ``play`` stands for its directory on the host."""

    name: str
    title: str
    task: str
    setup: str
    check: str
    max_steps: int = 40
    max_run_seconds: float = 600.0
    play: Sequence[dict[str, Any]] = field(default=())


@dataclass(frozen=True, kw_only=True)
class Score:
    """The outcome of one task. ``is_right`` is the verdict of the check, not of the model."""

    name: str
    end: str
    is_right: bool = False
    steps: int = 0
    tokens: int = 0
    cost_cents: float = 0.0
    seconds: float = 0.0
    run_id: str = ""
    detail: str = ""


class SetupFailed(Exception):
    """The host cannot be prepared for the task."""


def load_tasks(directory: Path, names: Sequence[str] = ()) -> list[Task]:
    """All tasks of a directory, or those named. Raises KeyError for an unknown name."""
    tasks = {
        file.stem: Task(name=file.stem, **tomllib.loads(file.read_text()))
        for file in sorted(directory.glob("*.toml"))
    }
    return [tasks[name] for name in names] if names else list(tasks.values())


async def evaluate(
    project: Project, task: Task, *, model: str, controller: str | None = None
) -> Score:
    """Prepares the host, carries the run out in this process, checks, and tidies up."""
    place = f"/tmp/holdline-task-{task.name}-{uuid4().hex[:8]}"  # noqa: S108 - on the host, with a name nobody can guess
    try:
        await _shell(project, f"mkdir -m 700 {place}\ncd {place}\n{task.setup}", place, controller)
        run = await _carried_out(project, task, place, model, controller)
        checked = await _shell(
            project, f"cd {place}\n{task.check}", place, controller, must_succeed=False
        )
    except SetupFailed as error:
        return Score(name=task.name, end="not begun", detail=str(error))
    finally:
        await _shell(project, f"rm -rf {place}", place, controller, must_succeed=False)
    return Score(
        name=task.name,
        is_right=bool(checked["success"]),
        end=f"{run.state}: {run.stop_reason}",
        steps=await in_database(run.steps.count),
        tokens=run.input_tokens + run.output_tokens,
        cost_cents=run.cost_cents,
        seconds=(run.ended_at - run.started_at).total_seconds()
        if run.ended_at and run.started_at
        else 0.0,
        run_id=str(run.id),
        detail="" if checked["success"] else f"{checked['stdout']}{checked['stderr']}"[-300:],
    )


async def _carried_out(
    project: Project, task: Task, place: str, model: str, controller: str | None
) -> AgentRun:
    def submitted() -> AgentRun:
        return services.run_submit(
            project=project,
            task=task.task.replace("{dir}", place),
            actor="evaluation",
            model=model,
            controllers=[controller] if controller else [],
            max_steps=task.max_steps,
            max_run_seconds=task.max_run_seconds,
            is_reserved=True,
        )

    run = await in_database(submitted)
    make: Callable[[str], ModelClient] = (
        (lambda _name: PlayClient(task.play, place)) if model == PLAY else client_for
    )
    await worker.carry_out(run.id, make_client=make)
    await in_database(run.refresh_from_db)
    if run.ended_at is None:
        # It waits for a person, and there is nobody here.
        run = await in_database(lambda: services.run_stop(run_id=run.id, actor="evaluation"))
    return run


async def _shell(
    project: Project, script: str, place: str, controller: str | None, *, must_succeed: bool = True
) -> dict[str, Any]:
    caller = Caller(project_id=project.id, label="evaluation", scopes=frozenset(AGENT_SCOPES))
    arguments: dict[str, Any] = {
        "command": "bash -s",
        "input": f"set -e\nexport TASK_DIR={place}\n{script}\n",
        "timeout_seconds": 45,
    }
    outcome = await tool_named("execute_command").call(
        arguments | ({"controller": controller} if controller else {}), caller
    )
    if must_succeed and (outcome.is_error or not outcome.body["success"]):
        raise SetupFailed(outcome.text[-300:])
    return (
        outcome.body
        if not outcome.is_error
        else {"success": False, "stdout": "", "stderr": outcome.text}
    )


class PlayClient:
    """Gives a task's own answers. Each waits until the output that it answers was printed."""

    def __init__(self, play: Sequence[dict[str, Any]], place: str) -> None:
        self._play, self._place = play, place
        self._next, self._since, self._waits = 0, 0, 0

    async def answer(
        self, conversation: Conversation, _tools: Sequence[OfferedTool], _on_text: OnText
    ) -> Answer:
        """The next answer of the task, or a call that waits for output."""
        results = [result for exchange in conversation.exchanges for result in exchange.results]
        session = next(iter(reversed(_SESSION.findall("\n".join(results)))), "")
        if self._next == len(self._play):
            return _call("finish_task", success=True, summary="played to its end")
        item = {name: _filled(value, self._place) for name, value in self._play[self._next].items()}
        seen = "\n".join(results[self._since :])
        if "when" in item and not re.search(item["when"], seen):
            self._waits += 1
            if self._waits > MOST_WAITS or '"state":"exited"' in (results[-1] if results else ""):
                return _call(
                    "finish_task", success=False, summary=f"nothing matched {item['when']!r}"
                )
            view = "screen" if item.get("screen") else "text"
            return _call(
                "send_command_input",
                session_id=session,
                wait_seconds=2 if view == "screen" else 10,
                view=view,
            )
        self._next, self._since, self._waits = self._next + 1, len(results), 0
        return _acting(item, session)

    async def close(self) -> None:
        """Does nothing: there is no connection."""


def _acting(item: dict[str, Any], session: str) -> Answer:
    if "run" in item:
        return _call("execute_command", command=item["run"])
    if "start" in item:
        return _call("start_interactive_command", command=item["start"], wait_seconds=20)
    if "keys" in item:
        return _call("send_command_input", session_id=session, keys=item["keys"], wait_seconds=10)
    if item.get("terminate"):
        return _call("send_command_input", session_id=session, terminate=True)
    return _call("send_command_input", session_id=session, input_text=item["type"], wait_seconds=20)


def _call(tool: str, **arguments: Any) -> Answer:
    return Answer(calls=(Call(f"play-{uuid4().hex[:12]}", tool, arguments),))


def _filled(value: Any, place: str) -> Any:
    return value.replace("{dir}", place) if isinstance(value, str) else value


def table(scores: Sequence[Score]) -> str:
    """The scores as a Markdown table with a sum."""
    rows = [
        "| Task | Right | Ended | Steps | Tokens | USD | Seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for score in scores:
        figures = (
            f"{score.steps} | {score.tokens} | {score.cost_cents / 100:.3f} | {score.seconds:.1f}"
        )
        rows.append(
            f"| {score.name} | {'yes' if score.is_right else 'no'} | {score.end} | {figures} |"
        )
    right = sum(score.is_right for score in scores)
    tokens, cents = sum(score.tokens for score in scores), sum(score.cost_cents for score in scores)
    return "\n".join(
        [*rows, f"| **{right} of {len(scores)}** | | | | {tokens} | {cents / 100:.3f} | |"]
    )


async def evaluate_all(
    project: Project,
    tasks: Sequence[Task],
    *,
    model: str,
    controller: str | None,
    at_once: int,
    on_score: Callable[[Score], None],
) -> list[Score]:
    """Evaluates all tasks, ``at_once`` at a time. ``on_score`` gets each score as it comes."""
    places = asyncio.Semaphore(at_once)

    async def one(task: Task) -> Score:
        async with places:
            score = await evaluate(project, task, model=model, controller=controller)
            on_score(score)
            return score

    return await asyncio.gather(*(one(task) for task in tasks))
