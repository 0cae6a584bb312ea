"""Budgets, and signs of a run that makes no progress."""

from typing import Any

import pytest

from agent.models import AgentRun
from agent.runs.judgement import (
    FAILURES,
    FRUITLESS,
    REPEATS,
    WAITS,
    Happening,
    exhausted,
    happening,
    stuck,
)

_LIMITS = {"max_steps": 10, "max_tokens": 1000, "max_cost_cents": 5, "max_run_seconds": 60}


def _ran(command: str, printed: str = "", **more: Any) -> Happening:
    call = {"name": "execute_command", "arguments": {"command": command}}
    body = {"stdout": printed, "return_code": 0, **more}
    return happening(call, {"body": body, "is_error": False})


def _waited(printed: str = "") -> Happening:
    call = {"name": "send_command_input", "arguments": {"session_id": "s"}}
    body = {"state": "running", "output": printed}
    return happening(call, {"body": body, "is_error": False})


@pytest.mark.parametrize(
    ("steps", "spent", "reason"),
    [
        (0, {}, None),
        (10, {}, "max_steps"),
        (0, {"input_tokens": 400, "output_tokens": 600}, "max_tokens"),
        (0, {"cost_cents": 5.0}, "max_cost"),
        (0, {"worked_seconds": 60.0}, "max_run_seconds"),
    ],
)
def test_the_first_limit_that_is_reached_is_named(
    steps: int, spent: dict[str, float], reason: str | None
) -> None:
    assert exhausted(AgentRun(**_LIMITS, **spent), steps) == reason


def test_no_cost_limit_is_no_limit() -> None:
    free = AgentRun(**{**_LIMITS, "max_cost_cents": 0}, cost_cents=1e9)
    assert exhausted(free, 0) is None


def test_repeated_calls_with_equal_results_count_as_stuck_in_any_session() -> None:
    same = [
        _ran("ls", "a", session_id=str(number), duration_ms=number) for number in range(REPEATS)
    ]
    assert stuck(same[:-1]) is None
    assert stuck(same) == "repeating"


def test_the_same_call_with_other_results_gets_on() -> None:
    assert stuck([_ran("date", str(number)) for number in range(30)]) is None


def test_two_calls_in_turn_are_alternating() -> None:
    assert stuck([_ran(("a", "b")[number % 2]) for number in range(2 * REPEATS)]) == "alternating"


def test_refusals_only_are_no_progress() -> None:
    refused = [
        happening(
            {"name": "x", "arguments": {"n": number}},
            {"body": {"code": "UNKNOWN_TOOL"}, "is_error": True},
        )
        for number in range(FAILURES)
    ]
    assert stuck(refused[:-1]) is None
    assert stuck(refused) == "no_progress"


def test_calls_that_show_only_what_was_seen_are_no_progress() -> None:
    seen = [_ran(f"first-{number}", str(number)) for number in range(3)]
    again = [_ran(f"again-{number}", str(number % 3)) for number in range(FRUITLESS)]
    assert stuck([*seen, *again[:-1]]) is None
    assert stuck([*seen, *again]) == "no_progress"


def test_waiting_on_is_no_repetition_for_a_long_while() -> None:
    assert stuck([_waited() for _ in range(WAITS - 1)]) is None
    assert stuck([_waited() for _ in range(WAITS)]) == "repeating"
    assert stuck([_waited(str(number)) for number in range(2 * WAITS)]) is None


def test_what_was_stuck_and_went_on_is_not() -> None:
    assert stuck([*[_ran("ls", "a")] * REPEATS, _ran("pwd", "/")]) is None


def test_answers_without_anything_in_them_are_noticed() -> None:
    assert stuck([], silent_answers=3) == "silent_answers"
