"""A person is asked about the calls of a run by the strictest policy, and about no others."""

from typing import Any
from uuid import uuid4

import pytest

from agent.llm.scripted import DEMO
from agent.models import AgentRun, AgentStep
from agent.runs.asking import question_of
from agent.runs.toolbox import Toolbox
from projects.models import Project
from projects.sessions.approvals.asking import HeldCall

_LIST = ("list_sessions", {})
_LOOK = ("execute_command", {"command": "ls"})
_REMOVE = ("execute_command", {"command": "rm -r /srv"})


def _run(own: str = "auto", *, project: str = "auto", of_runs: str = "auto", **fields: Any) -> Any:
    of = Project(name="shop", approvals=project, run_approvals=of_runs)
    values = {"model": "openai:x", "submitted_by": "admin:ada", "approvals": own, **fields}
    return AgentRun(id=uuid4(), project=of, **values)


def _asked(run: AgentRun, *calls: tuple[str, dict[str, Any]], results: Any = ()) -> Any:
    """The question about the last call of a step."""
    made = [{"id": "1", "name": name, "arguments": arguments} for name, arguments in calls]
    before = AgentStep(run=run, number=6, calls=[{"name": "x", "arguments": {}}], results=results)
    step = AgentStep(run=run, number=7, calls=made)
    toolbox = Toolbox(run.id, run.project_id, tuple(run.controllers), 500)
    return question_of(run, [before, step], len(made) - 1, toolbox, set())


@pytest.mark.parametrize(
    ("run", "asked_about"),
    [
        (_run(), []),
        (_run("ask-risky"), [_REMOVE]),
        (_run(project="ask-risky"), [_REMOVE]),
        (_run(of_runs="ask-risky"), [_REMOVE]),
        (_run("ask-risky", project="ask-all"), [_LOOK, _REMOVE]),
        (_run("ask-all", project="ask-risky"), [_LOOK, _REMOVE]),
        (_run("ask-risky", model=DEMO), []),
        (_run("ask-all", model=DEMO), [_LOOK, _REMOVE]),
    ],
)
def test_the_strictest_policy_says_which_calls_are_asked_about(
    run: AgentRun, asked_about: list[Any]
) -> None:
    assert [call for call in (_LIST, _LOOK, _REMOVE) if _asked(run, call)] == asked_about


def test_a_question_says_which_call_it_is_about_and_who_is_behind_it() -> None:
    run = _run("ask-all", controllers=["web1"], told_by=["admin:bob"])
    question = _asked(run, _LIST, _REMOVE)
    assert isinstance(question, HeldCall)
    assert (question.tool, question.arguments) == _REMOVE
    origin = {"run": str(run.id), "step": 7, "call": 1, "told_by": ["admin:bob"]}
    assert (question.origin, question.owner) == (origin, "admin:ada")
    assert question.request_id == Toolbox(run.id, run.project_id, (), 1).request_id(7, 1)
    assert (question.caller.label, question.caller.approvals) == (f"agent:{run.id}", "ask-all")
    assert question.named_host == "web1"


@pytest.mark.parametrize("controllers", [[], ["web1", "web2"]])
def test_a_question_names_a_host_only_where_the_run_has_one(controllers: list[str]) -> None:
    question = _asked(_run("ask-all", controllers=controllers), _REMOVE)
    assert question.named_host == ""
    assert "told_by" not in question.origin


@pytest.mark.parametrize(("kind", "is_hidden"), [("secret", True), ("line", False)])
def test_what_answers_a_prompt_for_a_secret_is_asked_about_unseen(
    kind: str, is_hidden: bool
) -> None:
    body = {"session_id": "s", "prompt": {"kind": kind}}
    results = [{"body": body, "is_error": False, "seconds": 0.1}]
    typing = ("send_command_input", {"session_id": "s", "input_text": "x\n"})
    assert _asked(_run("ask-all"), typing, results=results).is_hidden is is_hidden
