"""The demonstration as text, and its deviations from the expected turns."""

from typing import Any

from quickstart.demonstration.transcript import Turn, problems, render


def waiting(kind: str, output: str, evidence: str = "kernel") -> dict[str, Any]:
    return {
        "state": "awaiting_input",
        "output": output,
        "prompt": {"kind": kind, "text": output, "evidence": evidence},
    }


GOOD = [
    Turn("(the command)", 0.031, waiting("line", "What is your name? ")),
    Turn("Ada", 0.0062, waiting("secret", "Ada\nChoose a passphrase: ")),
    Turn("(hidden)", 0.007, waiting("line", "\nKeep it? [y/n] ")),
    Turn("y", 0.009, {"state": "exited", "output": "y\nKept.\n", "prompt": None, "exit_code": 0}),
]


def test_a_transcript_shows_each_turn_with_its_time_kind_and_evidence() -> None:
    assert render(GOOD[1:2]) == [
        "  turn 1     6.2 ms   typed: Ada",
        "      | Ada",
        "      | Choose a passphrase: ",
        "      -> waits for input   kind: secret   evidence: kernel",
    ]


def test_the_end_shows_the_exit_code() -> None:
    assert render(GOOD)[-1] == "      -> ended   exit code: 0"


def test_three_prompts_and_a_clean_exit_are_as_expected() -> None:
    assert problems(GOOD, "correct horse") == []


def test_a_wrong_kind_is_named() -> None:
    wrong = [GOOD[0], Turn("Ada", 0.1, waiting("line", "Choose a passphrase: ")), *GOOD[2:]]
    assert problems(wrong, "correct horse") == [
        "turn 2 should be awaiting_input secret, it is awaiting_input line"
    ]


def test_a_missing_prompt_is_a_problem() -> None:
    stuck = [GOOD[0], Turn("Ada", 10.0, {"state": "running", "output": "Ada\n"})]
    assert problems(stuck, "correct horse") == [
        "turn 2 should be awaiting_input secret, it is running",
        "there should be 4 turns, there were 2",
    ]


def test_hidden_input_that_comes_back_is_a_problem() -> None:
    leaky = [*GOOD[:2], Turn("(hidden)", 0.1, waiting("line", "correct horse\nKeep it? ")), GOOD[3]]
    assert problems(leaky, "correct horse") == ["the hidden input came back in a result"]


def test_a_failed_program_is_a_problem() -> None:
    failed = [*GOOD[:3], Turn("y", 0.1, {**GOOD[3].result, "exit_code": 1})]
    assert problems(failed, "correct horse") == ["the exit code should be 0, it is 1"]
