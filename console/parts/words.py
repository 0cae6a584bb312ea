"""Words that several pages share: what a session waits for, and how long ago something was."""

from datetime import datetime, timedelta
from typing import Final

from django.utils.timesince import timesince

from projects.storage import clock

_MINUTE: Final = timedelta(minutes=1)

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


def age(since: datetime) -> str:
    """Return how long something has lasted, in minutes at least: nobody reads ``0 minutes``."""
    return "less than a minute" if clock.now() - since < _MINUTE else timesince(since)


def ago(at: datetime) -> str:
    """Return how long ago something was."""
    return "just now" if clock.now() - at < _MINUTE else f"{timesince(at)} ago"
