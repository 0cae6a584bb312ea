"""Each event is told in one line, and none of them holds typed text."""

from typing import Any

import pytest

from projects.models import SessionEvent
from projects.output.recording.labels import label_of


@pytest.mark.parametrize(
    ("kind", "detail", "label"),
    [
        ("prompt", {"state": "running"}, None),
        (
            "prompt",
            {"state": "awaiting_input", "kind": "line", "prompt": "Go? "},
            "prompt (line): Go?",
        ),
        ("input", {"hidden": True}, "input by ada (hidden)"),
        ("take_over", {}, "ada took over"),
        ("hand_back", {"note": "fixed"}, "ada handed back: fixed"),
        ("approval", {"tool": "start", "answer": "approved"}, "ada approved: start"),
        ("resize", {"rows": 50, "cols": 132}, "132 columns, 50 rows"),
        ("gap", {"from": 5, "to": 9, "reason": "lost"}, "gap: 4 bytes are gone (lost)"),
        (
            "prompt",
            {"state": "awaiting_input", "kind": "screen", "prompt": ""},
            "prompt (screen)",
        ),
        (
            "lifetime",
            {"paused": True, "cause": "take_over"},
            "the lifetime is paused (an operator has the keyboard)",
        ),
        (
            "lifetime",
            {"paused": True, "cause": "approval 1"},
            "the lifetime is paused (approval 1)",
        ),
        ("lifetime", {"paused": False}, "the lifetime runs on"),
        ("end", {"state": "EXITED", "exit_code": 0}, "ended: exited, exit code 0"),
        ("end", {"state": "TERMINATED", "signal": "SIGKILL"}, "ended: terminated, SIGKILL"),
    ],
)
def test_an_event_is_told_in_one_line(kind: str, detail: dict[str, Any], label: str | None) -> None:
    assert label_of(SessionEvent(kind=kind, actor="ada", detail=detail)) == label
