"""Whoever follows a run is shown each of its news once, in order, however often they look."""

from typing import Any

import pytest
from django.utils import timezone

from agent.models import AgentRun, AgentStep
from agent.views.following import Follower
from agent.views.rendering import MOST_OUTPUT_LINES, Line, end_line, result_lines, whole_run
from projects.models import Approval
from projects.storage.sealing import seal

_RUN = AgentRun(state=AgentRun.State.RUNNING)


def _run(**fields: Any) -> AgentRun:
    return AgentRun(**{"state": AgentRun.State.RUNNING, **fields})


def _step(number: int = 1, calls: int = 0, *outputs: str, **fields: Any) -> AgentStep:
    results = [{"body": {"output": text}, "is_error": False, "seconds": 0.1} for text in outputs]
    made = [{"id": str(n), "name": f"call{n}", "arguments": {}} for n in range(calls)]
    return AgentStep(**{"number": number, "calls": made, "results": results, **fields})


def _news(
    follower: Follower, run: AgentRun, *steps: AgentStep, approvals: tuple[Approval, ...] = ()
) -> list[tuple[str, str, bool]]:
    return [(line.kind, line.text, on) for line, on in follower.news(run, steps, approvals)]


def test_an_answer_that_is_still_spoken_goes_on_where_it_was() -> None:
    follower = Follower()
    assert _news(follower, _run(draft="I loo")) == [("text", "I loo", False)]
    assert _news(follower, _run(draft="I loo")) == []
    assert _news(follower, _run(draft="I look")) == [("text", "k", True)]
    assert _news(follower, _run(), _step(text="I look.")) == [("text", ".", True)]
    assert _news(follower, _run(draft="I look."), _step(text="I look.")) == []


def test_what_a_person_said_is_shown_before_the_answer_that_is_spoken() -> None:
    follower = Follower()
    assert _news(follower, _run(draft="I loo", said_next=["go on"])) == [
        ("note", "go on", False),
        ("text", "I loo", False),
    ]
    assert _news(follower, _run(draft="Let", said_next=["go on"])) == [("text", "Let", False)]
    step = _step(1, 1, said_before=["go on", "you repeat yourself"], text="Let me")
    assert _news(follower, _run(), step) == [
        ("text", " me", True),
        ("note", "you repeat yourself", False),
        ("call", "call0", False),
    ]
    assert _news(follower, _run(), step) == []


def test_a_question_that_is_asked_again_begins_anew() -> None:
    follower = Follower()
    assert _news(follower, _run(draft="I look")) == [("text", "I look", False)]
    assert _news(follower, _run(draft="Let me")) == [("text", "Let me", False)]


def test_calls_and_results_come_one_by_one_as_they_are_stored() -> None:
    follower = Follower()
    stored = ((), (), ("a",), ("a",), ("a", "b"))
    assert [_news(follower, _RUN, _step(1, 2, *outputs)) for outputs in stored] == [
        [("call", "call0", False)],
        [],
        [("output", "a", False), ("call", "call1", False)],
        [],
        [("output", "b", False)],
    ]
    done = _step(1, 2, "a", "b", is_complete=True)
    following = _step(2, 1, "c", text="next", said_before=["go on"])
    assert _news(follower, _RUN, done, following) == [
        ("note", "go on", False),
        ("text", "next", False),
        ("call", "call0", False),
        ("output", "c", False),
    ]
    assert _news(follower, _RUN, done, following) == []


def test_nothing_is_shown_beyond_a_step_that_goes_on() -> None:
    assert _news(Follower(), _RUN, _step(1, text="one"), _step(2, text="two")) == [
        ("text", "one", False)
    ]


def test_a_notice_is_shown_when_it_changes() -> None:
    follower = Follower()
    shown = [_news(follower, _run(notice=text)) for text in ("busy", "busy", "", "busy")]
    assert shown == [[("note", "busy", False)], [], [], [("note", "busy", False)]]


def test_a_question_and_its_answer_are_shown_once_each() -> None:
    follower = Follower()
    asked = Approval(pk=7, tool="write_input", risk="unclear", sealed_arguments=seal(b"{}"))
    first, again = (_news(follower, _RUN, approvals=(asked,)) for _ in range(2))
    assert ([kind for kind, *_ in first], again) == (["approval"], [])
    asked.answer, asked.answered_by, asked.reason = Approval.Answer.DENIED, "ada", "not today"
    assert _news(follower, _RUN, approvals=(asked,)) == [
        ("approval", "#7 denied by ada: not today", False)
    ]
    assert _news(follower, _RUN, approvals=(asked,)) == []


def test_the_end_of_a_run_is_shown_once_and_last() -> None:
    follower = Follower()
    over = _run(ended_at=timezone.now(), stop_reason="done", report="tidied", input_tokens=3)
    over.state = AgentRun.State.FINISHED
    step = _step(text="ok", is_complete=True)
    assert _news(follower, over, step) == [
        ("text", "ok", False),
        ("end", "finished (done), 3 tokens\ntidied", False),
    ]
    assert _news(follower, over, step) == []


@pytest.mark.parametrize(("lines", "left_out"), [(60, 0), (61, 1), (200, 140)])
def test_long_output_keeps_its_head_and_its_tail(lines: int, left_out: int) -> None:
    result = {"body": {"output": "\n".join(map(str, range(lines)))}, "is_error": False}
    shown = [line.text for line in result_lines(result)]
    assert (shown[0], shown[-1]) == ("0", str(lines - 1))
    kept = [text for text in shown if text.isdigit()]
    assert len(kept) == lines - left_out == min(lines, MOST_OUTPUT_LINES)
    assert [text for text in shown if not text.isdigit()] == [f"… {left_out} lines …"] * (
        left_out > 0
    )


@pytest.mark.parametrize(
    ("body", "standing"),
    [
        ({"exit_code": 0, "state": "exited"}, "ended, exit code 0"),
        ({"exit_code": None, "return_code": 3}, "ended, exit code 3"),
        ({"exit_code": None, "signal": "SIGKILL", "end_reason": "x"}, "ended: SIGKILL"),
        ({"exit_code": None, "end_reason": "lifetime"}, "ended: lifetime"),
        ({"state": "running"}, "running"),
        ({"prompt": {"kind": "secret", "evidence": "echo"}}, "waits for input: secret (echo)"),
    ],
)
def test_a_result_says_how_its_program_stands(body: dict[str, Any], standing: str) -> None:
    assert list(result_lines({"body": body, "is_error": False})) == [Line("state", standing)]


def test_a_refused_call_shows_its_code_and_nothing_else() -> None:
    body = {"code": "SESSION_ENDED", "error": "it is over", "output": "x"}
    assert list(result_lines({"body": body, "is_error": True})) == [
        Line("error", "SESSION_ENDED: it is over")
    ]


def test_the_whole_run_shows_questions_with_their_calls() -> None:
    fields = {"tool": "x", "risk": "unclear", "sealed_arguments": seal(b"{}")}
    asked = [
        Approval(pk=number, origin={"run": "r", "step": step, "call": call}, **fields)
        for number, step, call in ((1, 1, 1), (2, 2, 0))
    ]
    run = _run(notice="busy", draft="so far", ended_at=timezone.now())
    steps = [_step(1, 2, "a", said_before=["hi"], text="t"), _step(2, 1)]
    shown = [(line.kind, line.text.split(":")[0]) for line in whole_run(run, steps, asked)]
    assert shown == [
        ("note", "hi"),
        ("text", "t"),
        ("call", "call0"),
        ("output", "a"),
        ("call", "call1"),
        ("approval", "asks for approval #1"),
        ("call", "call0"),
        ("approval", "asks for approval #2"),
        ("note", "busy"),
        ("text", "so far …"),
        ("end", end_line(run).text),
    ]
