"""Errors of a project's limits. Each hint says which setting an operator can raise."""

from collections.abc import Sequence
from typing import ClassVar

from projects.errors.base import Conflict, InvalidInput, shortened
from projects.errors.shown_tools import said


def _who_raises(label: str, field: str, project: str) -> str:
    """A sentence that says where an operator raises a limit of a project."""
    return (
        f"An operator raises {label} ({field}) of project {project}: admin > Projects > {project}."
    )


class LifetimeTooLong(InvalidInput):
    """The caller asks for a longer lifetime than the project allows an interactive session."""

    code = "LIFETIME_TOO_LONG"

    def __init__(self, asked_seconds: float, limit_seconds: float, project: str) -> None:
        self.limit_seconds = limit_seconds
        self.hint = (
            f"Ask for at most {limit_seconds:g} seconds, or leave lifetime_seconds out."
            f" {_who_raises('Maximum lifetime', 'max_lifetime_seconds', project)}"
        )
        super().__init__(
            f"lifetime_seconds is {asked_seconds:g}; project {project} allows at most "
            f"{limit_seconds:g}"
        )


class SessionLimitReached(Conflict):
    """The project's places for sessions of this kind are all in use."""

    code = "SESSION_LIMIT_REACHED"
    ENDING_THEMSELVES: ClassVar[frozenset[str]] = frozenset({"one_shot", "job"})
    ENDING: ClassVar[dict[str, str]] = {
        "interactive": (
            "Go on with an active session, or end it. send_command_input(session_id='{oldest}', "
            "terminate=true) ends the oldest."
        ),
        "background": (
            "End one that is no longer needed. stop_command(sessionId='{oldest}') ends the oldest."
        ),
        "one_shot": "Wait until one of them has ended, then try again.",
        "job": "Wait for one to complete. query_command_status(token='{oldest}') shows the oldest.",
    }

    RAISING: ClassVar[dict[str, str]] = {
        "background": "An operator raises the setting MAX_BACKGROUND_SESSIONS of the server.",
        "one_shot": "An operator raises the setting HOLDLINE_MAX_ONE_SHOT_COMMANDS of the server.",
        "job": "An operator raises the setting MAX_BACKGROUND_SESSIONS of the server.",
    }

    def __init__(
        self, limit: int, active: Sequence[str], project: str, *, kind: str = "interactive"
    ) -> None:
        self.limit, self.active, self.kind = limit, tuple(active), kind
        self.retryable = kind in self.ENDING_THEMSELVES and limit > 0
        raising = self.RAISING.get(kind) or _who_raises(
            "Max interactive sessions", "max_interactive_sessions", project
        )
        self.hint = f"{said(self.ENDING[kind], oldest=active[0])} {raising}" if active else raising
        shown = f"; active: {shortened(active)}" if active else ""
        sessions = f"{kind.replace('_', '-')} session{'' if limit == 1 else 's'}"
        super().__init__(f"project {project} allows {limit} {sessions} at a time{shown}")
