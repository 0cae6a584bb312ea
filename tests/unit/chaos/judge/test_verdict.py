"""The judge finds each kind of violation in a record that has it, and none in one that is right.

The record of a right conversation is changed in one place for each rule.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.judge.verdict import judged

_OUT = b"n 0> 0 say 1\r\nack 0 0\r\n"


class Run:
    """The files of a run with one conversation, which a test changes before they are judged."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = [
            ("start", 1.0, "11 10"),
            ("wait", 1.1, "0"),
            ("read", 2.1, "0 say 1"),
            ("wait", 2.2, "1"),
            ("read", 3.1, "end exit 7"),
            ("end", 3.2, "code 7"),
        ]
        self.out = _OUT
        self.stored = _OUT
        self.gaps: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = [
            _call(1.0, 1.2, "start_interactive_command", _turn(0, 5, "awaiting_input"), "", "a"),
            _call(2.0, 2.3, "send_command_input", _turn(5, 20, "awaiting_input"), "0 say 1", "b"),
            _call(3.0, 3.3, "send_command_input", _turn(20, 23, "exited"), "end exit 7", "c"),
            {"kind": "told_end", "at": 3.4, "session": "n", "alive": []},
            _call(3.5, 3.6, "get_session", _receipt()),
        ]

    def rules(self) -> list[str]:
        """The rules that the judge finds broken."""
        for folder in ("programs", "stored"):
            (self.directory / folder).mkdir(exist_ok=True)
        lines = [f"{kind} {at} {text}" for kind, at, text in self.log]
        (self.directory / "programs/n.log").write_text("\n".join(lines) + "\n")
        (self.directory / "programs/n.out").write_bytes(self.out)
        (self.directory / "stored/n.out").write_bytes(self.stored)
        stored = {"kind": "stored", "at": 4.0, "session": "n", "stream": "out", "gaps": self.gaps}
        history = [json.dumps(event) for event in (*self.events, stored)]
        (self.directory / "history.jsonl").write_text("\n".join(history) + "\n")
        return sorted({violation.rule for violation in judged(self.directory)[1]})


def _call(
    invoked: float, at: float, tool: str, body: dict[str, Any], text: str = "", request: str = ""
) -> dict[str, Any]:
    arguments = {"input_text": f"{text}\n"} if text else {}
    return {
        "kind": "call",
        "at": at,
        "session": "n",
        "tool": tool,
        "arguments": {**arguments, **({"request_id": request} if request else {})},
        "wait": 0.0,
        "invoked": invoked,
        "outcome": "ok",
        "body": body,
    }


def _turn(begin: int, end: int, state: str) -> dict[str, Any]:
    return {"session_id": "s", "state": state, "offset": begin, "next_offset": end}


def _receipt(**changed: Any) -> dict[str, Any]:
    right = {"lifecycle": "EXITED", "end_reason": "exited", "exit_code": 7, "signal": None}
    return {**right, "failure_code": None, **changed}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_right_record_has_no_violation(run: Run) -> None:
    assert run.rules() == []


def test_a_second_start_is_found(run: Run) -> None:
    run.log.insert(1, ("start", 1.05, "12 10"))
    assert run.rules() == ["start at most once"]


def test_an_input_that_was_read_twice_is_found(run: Run) -> None:
    run.log.insert(4, ("read", 2.5, "0 say 1"))
    assert "input at most once" in run.rules()


def test_an_acknowledged_input_that_was_never_read_is_found(run: Run) -> None:
    run.log.pop(2)
    assert "acknowledged input" in run.rules()


def test_inputs_in_another_order_are_found(run: Run) -> None:
    run.log[2], run.log[4] = ("read", 2.1, "end exit 7"), ("read", 3.1, "0 say 1")
    assert "input in order" in run.rules()


def test_an_input_that_was_refused_and_read_is_found(run: Run) -> None:
    run.events[1] |= {"outcome": "refused", "body": {"code": "SESSION_ENDED"}}
    run.events[2]["body"]["offset"] = 5
    assert run.rules() == ["refused means not done"]


def _refused_at_first(run: Run, code: str) -> None:
    """Have the first line refused, and typed again under another ``request_id``."""
    again = _call(2.0, 2.3, "send_command_input", _turn(5, 20, "awaiting_input"), "0 say 1", "d")
    run.events[1] |= {"invoked": 1.9, "at": 1.95, "outcome": "refused", "body": {"code": code}}
    run.events.insert(2, again)


def test_a_line_that_is_typed_again_after_a_refusal_is_right(run: Run) -> None:
    _refused_at_first(run, "RULES_UNREADABLE")
    assert run.rules() == []


def test_a_refused_line_that_was_read_before_its_repeat_is_found(run: Run) -> None:
    _refused_at_first(run, "RULES_UNREADABLE")
    run.log[2] = ("read", 1.97, "0 say 1")
    assert run.rules() == ["refused means not done"]


def test_a_repeated_line_that_was_read_twice_is_found(run: Run) -> None:
    _refused_at_first(run, "RULES_UNREADABLE")
    run.log.insert(3, ("read", 2.15, "0 say 1"))
    assert run.rules() == ["input at most once"]


def test_a_repeated_line_that_was_never_read_is_found(run: Run) -> None:
    _refused_at_first(run, "RULES_UNREADABLE")
    run.log.pop(2)
    assert "acknowledged input" in run.rules()


def test_a_line_that_was_refused_after_its_answer_is_none(run: Run) -> None:
    line = run.log.pop(2)
    run.events[1]["body"] |= {"state": "running"}
    assert "acknowledged input" in run.rules()
    run.events[2]["arguments"] = {"request_id": "c"}
    run.events[2]["body"] |= {"hint": "It waits. The last input was refused (RULES_UNREADABLE: x)"}
    assert "acknowledged input" not in run.rules()
    run.log.insert(2, line)
    assert "refused means not done" in run.rules()


def test_a_start_that_was_refused_and_done_is_found(run: Run) -> None:
    again = {**run.events[0], "arguments": {"request_id": "z"}, "outcome": "refused"}
    run.events.insert(0, {**again, "invoked": 0.9, "at": 0.95, "body": {"code": "EXPIRED"}})
    assert run.rules() == []
    run.log.insert(1, ("start", 1.05, "12 10"))
    assert run.rules() == ["refused means not done"]


def test_a_repeated_start_with_another_session_is_found(run: Run) -> None:
    again = _call(1.3, 1.4, "start_interactive_command", _turn(0, 5, "awaiting_input"), "", "a")
    run.events.insert(1, again)
    assert run.rules() == []
    again["body"]["session_id"] = "another"
    assert run.rules() == ["one result"]


def test_the_repeat_of_a_start_that_began_nothing_has_a_session_of_its_own(run: Run) -> None:
    first = _call(0.1, 0.2, "start_interactive_command", _turn(0, 0, "running"), "", "a")
    first["body"]["session_id"] = "earlier"
    look = _call(0.3, 0.4, "get_session", _receipt(lifecycle="EXPIRED", session_id="earlier"))
    run.events[:0] = [first, look]
    assert run.rules() == []
    first |= {"invoked": 0.5, "at": 0.6}
    assert run.rules() == ["one result"]
    first |= {"invoked": 0.1, "at": 0.2}
    look["body"]["lifecycle"] = "LOST"
    assert run.rules() == ["one result"]
    look["body"]["lifecycle"] = "START_FAILED"
    run.log.insert(1, ("start", 1.05, "12 10"))
    assert run.rules() == ["start at most once"]


def test_what_an_operator_typed_is_read_once_as_what_a_caller_typed(run: Run) -> None:
    typed = _call(2.4, 2.5, "console_input", {"success": True}, "1 say 2", "k")
    run.events.insert(2, typed)
    assert run.rules() == ["acknowledged input"]
    run.log.insert(4, ("read", 2.45, "1 say 2"))
    assert run.rules() == []
    run.log.insert(5, ("read", 2.46, "1 say 2"))
    assert run.rules() == ["input at most once"]
    run.log[4:6] = []
    run.log.append(("read", 3.15, "1 say 2"))
    assert run.rules() == ["input in order"]


def test_a_line_that_nobody_typed_is_found(run: Run) -> None:
    run.log.insert(4, ("read", 2.5, "rm -r /"))
    assert run.rules() == ["input as typed"]


def test_a_call_that_is_never_answered_is_found(run: Run) -> None:
    gave_up = {"kind": "gave_up", "at": 9.0, "session": "n", "tool": "get_session", "body": {}}
    run.events.append(gave_up)
    assert run.rules() == ["calls are answered"]


def test_a_conversation_that_stands_still_is_found(run: Run) -> None:
    run.events.append({"kind": "stuck", "at": 9.0, "session": "n"})
    assert run.rules() == ["conversations get on"]


def test_a_refusal_that_blames_the_caller_is_found(run: Run) -> None:
    wrong = _call(3.4, 3.45, "get_session", {"code": "INVALID_ARGUMENT"})
    run.events.append({**wrong, "outcome": "refused"})
    assert run.rules() == ["refusals fit"]


def test_what_could_not_be_read_is_found(run: Run) -> None:
    tool = "read_session_output"
    run.events.append({"kind": "unread", "at": 4.0, "session": "n", "tool": tool, "body": {}})
    assert run.rules() == ["reads are answered"]


def test_a_claim_to_wait_before_the_program_does_is_found(run: Run) -> None:
    run.log[3] = ("wait", 2.9, "1")
    assert run.rules() == ["waiting is true"]


def test_a_call_that_takes_longer_than_its_wait_is_found(run: Run) -> None:
    run.events[1] |= {"invoked": 0.5}
    assert run.rules() == ["calls end in time"]


def test_time_in_line_for_a_processor_does_not_count(run: Run) -> None:
    run.events[1] |= {"invoked": 0.5}
    waits = [(0.2, 40.0), (1.9, 40.5), (1.95, 2.0), (2.4, 2.5), (9.0, 99.0)]
    samples = [{"kind": "sample", "at": at, "pid": 7, "waited": waited} for at, waited in waits]
    run.events += samples
    assert run.rules() == []
    samples[3]["waited"] = 2.2
    assert run.rules() == ["calls end in time"]


def test_a_long_call_beside_a_fault_is_none(run: Run) -> None:
    run.events[1] |= {"invoked": 0.5}
    begin = {"kind": "fault", "at": 1.5, "number": 0, "fault": "link_cut", "state": "begin"}
    run.events += [begin, {**begin, "at": 1.6, "state": "end"}]
    assert run.rules() == []


@pytest.mark.parametrize(
    "stored", [_OUT[:-1], _OUT + b"x", _OUT.replace(b"say", b"sxy"), _OUT[2:] + _OUT[:2]]
)
def test_output_that_was_lost_doubled_or_changed_is_found(run: Run, stored: bytes) -> None:
    run.stored = stored
    assert run.rules() == ["every byte once"]


def test_a_gap_is_no_loss_if_its_reason_happened(run: Run) -> None:
    run.stored = _OUT[:3] + _OUT[9:]
    run.gaps = [{"from_offset": 3, "to_offset": 9, "reason": "ring_overflow"}]
    assert run.rules() == ["gaps say why"]
    begin = {"kind": "fault", "at": 1.5, "number": 0, "fault": "link_stall", "state": "begin"}
    run.events += [begin, {**begin, "at": 1.6, "state": "end"}]
    assert run.rules() == []


def test_what_a_dead_holder_had_not_sent_yet_may_be_gone(run: Run) -> None:
    run.stored = _OUT[:5]
    assert "every byte once" in run.rules()
    killed = {"kind": "fault", "at": 2.5, "number": 0, "fault": "holder_kill", "state": "begin"}
    run.events.append({**killed, "victims": ["s"]})
    assert "every byte once" not in run.rules()
    run.stored = b"other"
    assert "every byte once" in run.rules()


def test_a_turn_that_skips_output_is_found(run: Run) -> None:
    run.events[1]["body"]["offset"] = 9
    assert run.rules() == ["nothing is skipped"]


@pytest.mark.parametrize("wrong", [{"stdout": "n"}, {"stderr": "x"}, {"return_code": 0}])
def test_a_wrong_answer_of_a_one_shot_is_found(run: Run, wrong: dict[str, Any]) -> None:
    right = {"stdout": _OUT.decode(), "stderr": "", "return_code": 7, "end_reason": "exited"}
    run.events.append(_call(5.0, 5.1, "execute_command", right, "", "o"))
    assert run.rules() == []
    run.events[-1]["body"] = {**right, **wrong}
    assert run.rules() == ["one-shots are whole"]


def test_a_one_shot_may_say_that_output_was_lost_with_its_holder(run: Run) -> None:
    lost = {"stdout": "[… 20 bytes are lost: lost …]", "stderr": "", "return_code": 7}
    answer = {**lost, "end_reason": "exited", "truncated": True}
    run.events.append(_call(5.0, 5.1, "execute_command", answer, "", "o"))
    assert run.rules() == ["one-shots are whole"]
    killed = {"kind": "fault", "at": 2.5, "number": 0, "fault": "holder_kill", "state": "begin"}
    run.events.append({**killed, "victims": ["s"]})
    assert run.rules() == []
    for wrong in ({"stdout": ""}, {"truncated": False}, {"return_code": 0}):
        run.events[-2]["body"] = {**answer, **wrong}
        assert run.rules() == ["one-shots are whole"]


def test_a_wrong_exit_code_is_found(run: Run) -> None:
    run.events[4]["body"]["exit_code"] = 8
    assert run.rules() == ["ends are true"]


def test_a_receipt_is_judged_once_the_end_was_told(run: Run) -> None:
    look = _call(2.5, 2.6, "get_session", _receipt(lifecycle="RUNNING", end_reason=None))
    run.events.insert(2, look)
    assert run.rules() == []
    look |= {"invoked": 3.45, "at": 3.5}
    assert run.rules() == ["ends are true"]


def test_a_loss_that_nobody_caused_is_found(run: Run) -> None:
    run.events[4]["body"] = _receipt(lifecycle="LOST", end_reason="lost")
    assert run.rules() == ["ends are true"]


def test_a_process_that_outlives_its_end_is_found(run: Run) -> None:
    run.events[3]["alive"] = [11]
    assert run.rules() == ["ended means ended"]


def test_a_log_with_a_line_missing_is_found(run: Run) -> None:
    from chaos.program import line_of

    lines = [f"{line_of('n', number)}\n" for number in range(4)]
    followed = {"kind": "followed", "at": 4.0, "session": "n", "written": 4, "last": lines[-1]}
    run.events.append({**followed, "pieces": [[None, "".join(lines)]]})
    assert run.rules() == []
    run.events[-1] = {**followed, "pieces": [[None, lines[0]], [None, lines[2] + lines[3]]]}
    assert run.rules() == ["logs are whole"]


@pytest.mark.parametrize("what", ["programs", "open questions", "audit"])
def test_what_is_left_behind_is_found(run: Run, what: str) -> None:
    run.events.append({"kind": "left_behind", "at": 5.0, "what": what, "found": [11]})
    assert run.rules() == ["nothing is left"]
