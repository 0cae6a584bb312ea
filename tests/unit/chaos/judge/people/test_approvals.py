"""The judge finds what is wrong with an approval: asked, answered and done."""

from typing import Any

import pytest

from chaos.judge.people.approvals import check_approvals
from chaos.judge.record import Call, Record
from chaos.truth import Truth
from tests.unit.chaos.judge.people.records import call, note, record

_PENDING: dict[str, Any] = {"code": "APPROVAL_PENDING", "approval_id": 7}


class Asked:
    """A start that was asked about as #7, and what came of it; a test changes one thing of it."""

    def __init__(self) -> None:
        self.calls = [
            self.start(1.0, "refused", **_PENDING),
            self.start(3.0, "refused", **_PENDING),
            self.start(5.0, "ok", session_id="s"),
        ]
        self.answers = [
            note(2.0, approval=7, answer="approve", state="sent"),
            note(2.5, approval=7, answer="approve", state="done"),
        ]
        self.truth = Truth(starts=[4.0])

    def start(self, at: float, outcome: str, request: str = "a", **body: Any) -> Call:
        return call("start_command", at, at + 0.5, outcome, requestId=request, body=body)

    def denied(self) -> None:
        """Have the person deny the call, and the product keep to that."""
        for each in self.answers:
            each["answer"] = "deny"
        self.calls[-1] = self.start(5.0, "refused", code="DENIED_BY_OPERATOR")
        self.truth.starts = []

    def rules(self) -> list[str]:
        found: Record = record(self.calls, self.truth, answer=self.answers)
        return sorted({violation.rule for violation in check_approvals(found)})


@pytest.fixture
def asked() -> Asked:
    return Asked()


def test_an_approved_start_has_no_violation(asked: Asked) -> None:
    assert asked.rules() == []


def test_a_denied_start_has_no_violation(asked: Asked) -> None:
    asked.denied()
    assert asked.rules() == []


def test_a_second_question_about_one_call_is_found(asked: Asked) -> None:
    asked.calls[1].body["approval_id"] = 8
    asked.answers += [{**each, "approval": 8} for each in asked.answers]
    assert asked.rules() == ["asked once"]


def test_one_question_about_two_calls_is_found(asked: Asked) -> None:
    asked.calls.append(asked.start(6.0, "refused", "b", **_PENDING))
    assert asked.rules() == ["asked once"]


def test_a_start_before_the_approval_is_found(asked: Asked) -> None:
    asked.truth.starts = [1.7]
    assert asked.rules() == ["denied means not done"]


def test_a_denied_start_that_runs_is_found(asked: Asked) -> None:
    asked.denied()
    asked.truth.starts = [4.0]
    assert asked.rules() == ["denied means not done"]


def test_a_denied_start_with_a_result_is_found(asked: Asked) -> None:
    right = asked.calls[-1]
    asked.denied()
    asked.calls[-1] = right
    assert asked.rules() == ["denied means not done"]


def test_a_start_that_nobody_answered_for_and_runs_is_found(asked: Asked) -> None:
    asked.answers = []
    assert asked.rules() == ["denied means not done"]


def test_a_later_answer_that_wins_is_found(asked: Asked) -> None:
    asked.answers.append(note(2.8, approval=7, answer="deny", state="sent"))
    asked.answers.append(note(2.9, approval=7, answer="deny", state="done"))
    assert asked.rules() == []
    asked.calls[-1] = asked.start(5.0, "refused", code="DENIED_BY_OPERATOR")
    assert asked.rules() == ["the first answer holds"]


def test_a_change_that_nobody_made_is_found(asked: Asked) -> None:
    asked.truth.starts = []
    asked.calls[-1] = asked.start(5.0, "refused", code="CHANGED_SINCE_APPROVAL")
    assert asked.rules() == ["the first answer holds"]


def test_a_denied_line_that_was_read_is_found(asked: Asked) -> None:
    asked.denied()
    typed = {"input_text": "1 say 2\n", "request_id": "i"}
    asked.calls = [
        call("send_command_input", 1.0, 1.5, "refused", **typed, body=_PENDING),
        call("send_command_input", 5, 5.5, "refused", **typed, body={"code": "DENIED_BY_OPERATOR"}),
    ]
    assert asked.rules() == []
    asked.truth.reads = [(4.0, "1 say 2")]
    assert asked.rules() == ["denied means not done"]
