"""The words for what a session waits for, on the board and on the page of a session."""

from typing import Final

WAITS: Final = {
    "secret": "a secret",
    "approval": "an approval",
    "taken": "an operator (taken over)",
    "line": "a line",
    "key": "a key",
    "screen": "a key on its screen",
    "shell": "a shell command",
}
"""What a session waits for, by its kind."""

_KNOWN_BY: Final = {
    "kernel": "certain: the program reads",
    "kernel+quiet": "certain: the program reads, and prints nothing",
    "heuristic": "likely: the output looks like a prompt",
}


def waiting_for(kind: str) -> str:
    """Return what a session that waits is said to do."""
    return f"waits for {WAITS.get(kind, kind)}"


def known_by(evidence: str) -> str:
    """Say how sure it is that a session waits, and why."""
    return _KNOWN_BY.get(evidence, evidence)
