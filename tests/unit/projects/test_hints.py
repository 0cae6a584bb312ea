"""Each result says what to do next."""

from typing import Any

import pytest

from projects.hints import hint_for
from projects.results import Prompt


def _hint(state: Any, **fields: Any) -> str:
    return hint_for(state, **{"prompt": None, "end_reason": None, "exit_code": None, "signal": None, "is_online": True, **fields})


@pytest.mark.parametrize(
    ("kind", "named"), [("line", "input_text"), ("secret", "Never guess"), ("key", "keys"), ("screen", "view='screen'"), ("shell", "exit")]
)
def test_every_kind_of_prompt_says_how_to_answer_it(kind: Any, named: str) -> None:
    certain = _hint("awaiting_input", prompt=Prompt(kind=kind, text="? ", evidence="kernel"))
    guessed = _hint("awaiting_input", prompt=Prompt(kind=kind, text="? ", evidence="heuristic"))
    assert named in certain
    assert guessed.startswith(certain)
    assert "guess" in guessed.removeprefix(certain)


def test_a_running_program_names_the_tool_that_waits_on() -> None:
    assert "send_command_input(input_text=''" in _hint("running")
    assert "out of reach" in _hint("running", is_online=False)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"end_reason": "exited", "exit_code": 0}, "well"),
        ({"end_reason": "exited", "exit_code": 3}, "exit code 3"),
        ({"end_reason": "exited", "signal": "SIGSEGV"}, "SIGSEGV"),
        ({"end_reason": "terminated", "signal": "SIGTERM"}, "terminated"),
        ({"end_reason": "timed_out"}, "lifetime_seconds"),
        ({"end_reason": "lost"}, "rebooted"),
        ({"end_reason": "start_failed"}, "not be started"),
        ({"end_reason": "expired"}, "not started"),
    ],
)
def test_an_end_says_how_it_came(fields: dict[str, Any], named: str) -> None:
    assert named in _hint("exited", **fields)
