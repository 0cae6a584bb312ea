"""What a model is told before its task."""

import pytest

from agent.prompt import instructions
from projects.tools import guidance


@pytest.mark.requirement("S3.R5.2")
def test_the_prompt_says_when_to_use_which_tool() -> None:
    text = instructions(controllers=(), marker="m")
    for advice in (guidance.CHOICE, guidance.PROMPTS, guidance.AWAITING, guidance.WAITING, guidance.SECRETS, guidance.TAKEN_OVER):
        assert advice in text
    for kind in ("'line'", "'secret'", "'key'", "'screen'", "'shell'"):
        assert kind in guidance.AWAITING


def test_the_prompt_names_the_fence_and_the_hosts_of_the_run() -> None:
    text = instructions(controllers=("web1", "web2"), marker="f00d")
    assert "<output f00d>" in text
    assert "web1, web2" in text
