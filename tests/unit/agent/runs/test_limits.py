"""A run ends at its limits, and after a warning if its model does not get on."""

from typing import Any

import pytest

from agent.models import AgentRun, AgentStep
from agent.runs import judgement, runner
from agent.runs.runner import MOST_BACKOFF_SECONDS, MOST_INTERRUPTIONS, Ended


def _run(**fields: Any) -> AgentRun:
    limits = {"max_steps": 5, "max_tokens": 100, "max_cost_cents": 0, "max_run_seconds": 60.0}
    return AgentRun(**{**limits, **fields})


def _reason(run: AgentRun, steps: int = 1, *, is_acting: bool = False) -> str:
    """The reason why the run may not go on; empty if it may."""
    try:
        runner._check(run, steps, is_acting=is_acting)
    except Ended as ended:
        return f"{ended.state} {ended.stop_reason}"
    return ""


@pytest.mark.parametrize(
    ("fields", "steps", "asking", "acting"),
    [
        ({}, 4, "", ""),
        ({}, 5, "failed max_steps", ""),
        ({"input_tokens": 50, "output_tokens": 50}, 1, "failed max_tokens", ""),
        ({"worked_seconds": 60.0}, 1, "failed max_run_seconds", "failed max_run_seconds"),
        ({"interruptions": MOST_INTERRUPTIONS}, 1, "", ""),
        ({"interruptions": MOST_INTERRUPTIONS + 1}, 1, *["failed worker_failed"] * 2),
        ({"stop_requested_by": "ada", "interruptions": 9}, 9, *["stopped stopped"] * 2),
    ],
)
def test_calls_that_were_paid_for_are_made_beyond_all_limits_but_time(
    fields: dict[str, Any], steps: int, asking: str, acting: str
) -> None:
    assert _reason(_run(**fields), steps) == asking
    assert _reason(_run(**fields), steps, is_acting=True) == acting


def _steps(*texts: str) -> list[AgentStep]:
    return [AgentStep(number=number, text=text) for number, text in enumerate(texts, 1)]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a", "b"], []),
        (["", "b"], []),
        (["a", ""], ["Your answer was empty. Call a tool, or finish_task."]),
        ([" ", "\n"], ["Your answer was empty. Call a tool, or finish_task."]),
        (["", "", ""], [judgement.NUDGE["silent_answers"] + judgement.NUDGE_END]),
    ],
)
def test_a_model_that_says_nothing_is_told_and_then_warned(
    texts: list[str], said: list[str]
) -> None:
    is_nudge = bool(said) and said[0].endswith(judgement.NUDGE_END)
    assert runner._judged(_run(), _steps(*texts)) == (said, is_nudge)


def test_a_model_is_warned_once_and_judged_by_what_it_did_since() -> None:
    silent = _steps("", "", "", "", "")
    assert runner._judged(_run(nudged_at_step=3), silent)[1] is False
    with pytest.raises(Ended) as ended:
        runner._judged(_run(nudged_at_step=3), _steps(*[""] * 6))
    assert (ended.value.state, ended.value.stop_reason) == ("failed", "stuck_silent_answers")


@pytest.mark.parametrize(("cuts", "is_over"), [(2, False), (3, True)])
def test_a_run_whose_answers_are_cut_off_in_a_row_is_over(cuts: int, is_over: bool) -> None:
    told = [judgement.told_of_cut("the limit")]
    steps = _steps(*["text"] * (cuts + 1))
    for step in steps[2:]:
        step.said_before = told
    if not is_over:
        assert runner._judged(_run(said_next=told), steps) == ([], False)
        return
    with pytest.raises(Ended) as ended:
        runner._judged(_run(said_next=told), steps)
    assert ended.value.stop_reason == "answer_cut"


@pytest.mark.parametrize(("wanted", "waited"), [(0.0, 0.0), (7.5, 7.5), (3600.0, 60.0)])
def test_an_endpoint_says_how_long_to_wait_up_to_a_bound(wanted: float, waited: float) -> None:
    assert MOST_BACKOFF_SECONDS == 60.0
    assert runner._pause(9, wanted) == waited


def test_each_failure_doubles_the_pause_up_to_a_bound(settings: Any) -> None:
    settings.AGENT_MODEL_BACKOFF_SECONDS = 1.0
    for failures, expected in ((1, 1.0), (2, 2.0), (4, 8.0), (30, MOST_BACKOFF_SECONDS)):
        assert 0.7 * expected <= runner._pause(failures, None) <= 1.3 * expected
