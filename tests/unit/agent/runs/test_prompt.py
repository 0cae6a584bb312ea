"""The system prompt that a model gets before its task."""

import pytest

from agent.runs.prompt import instructions
from projects.errors.shown_tools import TOOL_NAMES, fitting
from projects.tools import guidance


@pytest.mark.requirement("S3.R5.2")
def test_the_prompt_says_when_to_use_which_tool() -> None:
    text = instructions(controllers=(), marker="m", names=TOOL_NAMES)
    for advice in (guidance.CHOICE, guidance.AWAITING, guidance.TAKEN_OVER):
        assert fitting(advice, TOOL_NAMES) in text
    for kind in ("'line'", "'secret'", "'key'", "'screen'", "'shell'"):
        assert kind in guidance.AWAITING


def test_the_prompt_names_the_fence_and_the_hosts_of_the_run() -> None:
    text = instructions(controllers=("web1", "web2"), marker="f00d", names=TOOL_NAMES)
    assert "<output f00d>" in text
    assert "web1, web2" in text
