"""The guide names each exit code of a followed run, and each reason for which a run ends."""

import re
from typing import get_args

import pytest

from agent.llm.conversation import ModelFailure
from agent.management import live
from agent.models import AgentRun
from agent.runs.judgement import Stuck
from tests.support.stack import PROJECT_ROOT

_GUIDE = (PROJECT_ROOT / "docs/howto/agent.md").read_text()
_STATE = AgentRun.State


@pytest.mark.parametrize(
    ("state", "is_successful", "code", "meaning"),
    [
        (_STATE.FINISHED, True, 0, "the task was done"),
        (_STATE.FINISHED, None, 0, "answered in words"),
        (_STATE.FINISHED, False, 1, "the model gave up"),
        (_STATE.FAILED, None, 2, "the run failed"),
        (_STATE.STOPPED, None, 3, "the run was stopped"),
    ],
)
def test_each_end_has_the_exit_code_of_the_guide(
    state: str, is_successful: bool | None, code: int, meaning: str
) -> None:
    assert live._exit_code(AgentRun(state=state, is_successful=is_successful)) == code
    (told,) = re.findall(rf"^\| {code} \| (.*) \|$", _GUIDE, re.MULTILINE)
    assert meaning in told


def _kinds(failure: type[ModelFailure]) -> set[type[ModelFailure]]:
    """The kinds of a failure that are no kind of another one."""
    below = failure.__subclasses__()
    return {leaf for each in below for leaf in _kinds(each)} if below else {failure}


def test_each_reason_of_an_end_is_in_the_guide() -> None:
    source = "".join(path.read_text() for path in (PROJECT_ROOT / "agent/runs").glob("*.py"))
    words = r'"(max_(?:steps|tokens|cost|run_seconds)|answer_cut|worker_failed|done|gave_up)"'
    failures = {kind.stop_reason for kind in _kinds(ModelFailure)}
    reasons = {*re.findall(words, source), *failures, "answered", "stopped"}
    reasons |= {f"stuck_{verdict}" for verdict in get_args(Stuck)}
    section = _GUIDE.partition("## How a run ends")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `\w+` \| ([^|]*) \|", section, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(told))) == reasons
