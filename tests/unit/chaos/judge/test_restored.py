"""What a restore may lose is no violation, and everything else still is one."""

from pathlib import Path
from typing import Any

import pytest

from chaos.judge.output import is_whole
from tests.unit.chaos.judge.test_verdict import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def _restored(run: Run, begin: float, end: float) -> None:
    """Have a backup made at ``begin`` restored, and confirmed at ``end``."""
    fault = {"kind": "fault", "number": 0, "fault": "restore"}
    middle = (begin + end) / 2
    run.events += [
        {**fault, "at": begin, "state": "begin"},
        {"kind": "suspended", "at": middle, "is_so": True},
        {"kind": "suspended", "at": end, "is_so": False},
        {**fault, "at": end, "state": "end"},
    ]


def _receipt_of(run: Run, **changed: Any) -> None:
    run.events[4]["body"] |= changed


def test_an_end_between_backup_and_restore_may_be_told_as_lost(run: Run) -> None:
    _receipt_of(run, lifecycle="LOST", end_reason="lost")
    run.stored = run.out[:5]
    assert "ends are true" in run.rules()
    _restored(run, 2.8, 3.45)
    assert run.rules() == []


def test_an_end_after_the_restore_is_not_lost(run: Run) -> None:
    _receipt_of(run, lifecycle="LOST", end_reason="lost")
    _restored(run, 2.4, 2.6)
    assert run.rules() == ["ends are true"]


def test_an_end_that_was_told_before_the_backup_is_not_lost(run: Run) -> None:
    _receipt_of(run, lifecycle="LOST", end_reason="lost")
    _restored(run, 3.45, 3.48)
    assert run.rules() == ["ends are true"]


def test_a_caller_that_is_served_before_the_restore_is_confirmed_is_found(run: Run) -> None:
    _restored(run, 1.7, 2.5)
    assert run.rules() == []
    run.events[1] |= {"invoked": 2.15}
    assert run.rules() == ["restored means suspended"]


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "REQUEST_NOT_KNOWN"])
def test_refusals_of_a_restore_need_one(run: Run, code: str) -> None:
    refused = {**run.events[1], "outcome": "refused", "body": {"code": code}}
    run.events.insert(1, {**refused, "invoked": 1.8, "at": 1.9})
    assert run.rules() == ["refusals fit"]
    _restored(run, 1.3, 1.95)
    assert run.rules() == []


def test_a_session_that_began_before_the_backup_is_known(run: Run) -> None:
    refused = {**run.events[1], "outcome": "refused", "body": {"code": "SESSION_NOT_FOUND"}}
    run.events.insert(1, {**refused, "invoked": 1.8, "at": 1.9})
    _restored(run, 1.3, 1.7)
    assert "refusals fit" in run.rules()


def test_a_session_that_began_after_the_backup_may_be_unknown(run: Run) -> None:
    again = {**run.events[4], "outcome": "refused", "body": {"code": "SESSION_NOT_FOUND"}}
    run.events.append({**again, "invoked": 3.6, "at": 3.7})
    assert run.rules() == ["refusals fit"]
    _restored(run, 1.1, 1.3)
    assert run.rules() == []


@pytest.mark.parametrize(
    ("read", "rewinds", "is_right"),
    [
        ("abcdef", 0, True),
        ("abccdef", 0, False),
        ("abcdcdef", 1, True),
        ("abcabcdef", 1, True),
        ("abdef", 1, False),
        ("abcxdef", 1, False),
        ("abcd", 1, False),
    ],
)
def test_reads_after_a_restore_skip_nothing(read: str, rewinds: int, is_right: bool) -> None:
    assert is_whole(read, "abcdef", rewinds) is is_right


def test_a_caller_may_give_up_at_a_restore_and_never_else(run: Run) -> None:
    run.events.append({"kind": "gave_up", "at": 3.0, "session": "n", "tool": "t", "body": {}})
    assert run.rules() == ["calls are answered"]
    _restored(run, 2.8, 3.1)
    assert run.rules() == []


def test_an_input_that_was_still_on_its_way_may_be_forgotten(run: Run) -> None:
    run.log.pop(2)
    run.events[1]["body"] |= {"state": "running"}
    assert "acknowledged input" in run.rules()
    _restored(run, 2.1, 2.9)
    assert "acknowledged input" not in run.rules()
    run.events[1]["body"] |= {"state": "awaiting_input"}
    assert "acknowledged input" in run.rules()
