"""A record of one conversation named ``n``, made of calls and notes, for a test to change."""

from typing import Any

from chaos.judge.record import Call, Record
from chaos.truth import Truth


def call(tool: str, invoked: float, answered: float, outcome: str = "ok", **more: Any) -> Call:
    """A call of the conversation; ``more`` are its arguments, and its ``body``."""
    body = more.pop("body", {})
    return Call("n", tool, more, 0.0, invoked, answered, outcome, body)


def note(at: float, **what: Any) -> dict[str, Any]:
    """An event that is about the conversation."""
    return {"at": at, "session": "n", **what}


def record(calls: list[Call], truth: Truth, **notes: list[dict[str, Any]]) -> Record:
    """A record with these calls and notes, and with what the program wrote down."""
    found = Record(calls=calls, truths={"n": truth})
    found.notes.update(notes)
    return found
