"""The judge finds what is wrong while a person has a keyboard, and when it goes back."""

from typing import Any

import pytest

from chaos.judge.people.keyboards import check_keyboards, check_lifetimes
from chaos.judge.record import Call, Span
from chaos.truth import Truth
from tests.unit.chaos.judge.people.records import call, note, record


class Visit:
    """An operator who has the keyboard for 10 s of a lifetime of 20 s; a test changes one thing."""

    def __init__(self) -> None:
        self.calls = [
            call("start_interactive_command", 1.0, 1.5, lifetime_seconds=20.0),
            self.typed(5.0, "refused", code="SESSION_TAKEN_OVER"),
            self.looked(12.5, state="awaiting_input", hint="handed back with a note: mind"),
            self.looked(32.0, state="exited"),
            call("get_session", 33.0, 33.1, body={"lifecycle": "TIMED_OUT"}),
        ]
        self.keyboard = [
            note(2.0, state="held"),
            note(12.0, state="handing", note="mind"),
            note(12.2, state="back", note="mind"),
        ]
        self.page = [note(1.8, state="open")]
        self.spans: list[Span] = []

    def typed(self, at: float, outcome: str, **body: Any) -> Call:
        arguments = {"input_text": "1 say 1\n", "request_id": "a"}
        return call("send_command_input", at, at + 0.2, outcome, **arguments, body=body)

    def looked(self, at: float, **body: Any) -> Call:
        return call("send_command_input", at, at + 0.2, body=body)

    def lost(self, code: str = "KEYBOARD_NOT_HELD") -> None:
        """Have the keyboard go back by itself, because the page was gone for long."""
        self.page += [note(3.0, state="broken"), note(90.0, state="open")]
        self.keyboard[1:] = [note(90.1, state="lost", code=code)]

    def rules(self) -> list[str]:
        found = record(self.calls, Truth(starts=[1.2]), keyboard=self.keyboard, page=self.page)
        found.spans = self.spans
        violations = [*check_keyboards(found), *check_lifetimes(found)]
        return sorted({violation.rule for violation in violations})


@pytest.fixture
def visit() -> Visit:
    return Visit()


def test_a_right_visit_has_no_violation(visit: Visit) -> None:
    assert visit.rules() == []


def test_a_caller_who_types_beside_the_operator_is_found(visit: Visit) -> None:
    visit.calls[1] = visit.typed(5.0, "ok", state="running")
    assert visit.rules() == ["one keyboard"]


def test_a_refusal_with_another_code_is_found(visit: Visit) -> None:
    visit.calls[1] = visit.typed(5.0, "refused", code="INPUT_BLOCKED")
    assert visit.rules() == ["one keyboard"]


def test_a_caller_may_type_once_the_keyboard_is_back(visit: Visit) -> None:
    visit.calls[1] = visit.typed(12.3, "ok", state="running", hint="a note: mind")
    assert visit.rules() == []


def test_a_note_that_the_caller_is_not_told_is_found(visit: Visit) -> None:
    visit.calls[2].body["hint"] = ""
    assert visit.rules() == ["the note is told"]


def test_a_keyboard_of_a_page_that_was_gone_may_go_back(visit: Visit) -> None:
    visit.lost()
    assert "keyboards stay" not in visit.rules()


def test_a_keyboard_that_is_lost_beside_an_open_page_is_found(visit: Visit) -> None:
    visit.lost()
    visit.page[1:] = [note(85.0, state="broken"), note(89.0, state="open")]
    assert "keyboards stay" in visit.rules()


def test_a_lifetime_that_ran_on_meanwhile_is_found(visit: Visit) -> None:
    visit.calls[3] = visit.looked(22.0, state="exited")
    assert visit.rules() == ["lifetimes"]


def test_a_lifetime_may_run_on_while_a_fault_delays_the_command(visit: Visit) -> None:
    visit.calls[3] = visit.looked(22.0, state="exited")
    visit.spans = [Span(0, "link_stall", 1.9, 12.0)]
    assert visit.rules() == []


def test_a_lifetime_that_does_not_end_is_found(visit: Visit) -> None:
    visit.calls[3] = visit.looked(60.0, state="exited")
    assert visit.rules() == ["lifetimes"]
