"""The processes that outlived their session, as far as they are known."""

import json
from typing import Any, Final

from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from controller_client.protocol.values import NOTE_LEFT_UNKNOWN, NOTE_NOTHING_LEFT

NOTE_REBOOTED: Final = "the host was rebooted"
"""The note of a session that was lost with everything that ran on its host."""


def survivors_of(state: str, survivors: Any, notes: Any) -> tuple[str, ...] | None:
    """``name[pid]`` of each survivor, from a session's row as the database gave it.

    Empty: none. None: unknown, while the session is active, after a loss unless the host made sure
    that nothing is left, and where the host says that it could not look.
    """
    if state in ACTIVE_STATES:
        return None
    named = tuple(_listed(survivors))
    if named:
        return named
    noted = set(_listed(notes))
    is_known = (
        {NOTE_NOTHING_LEFT, NOTE_REBOOTED} & noted
        if state == SessionState.LOST
        else NOTE_LEFT_UNKNOWN not in noted
    )
    return () if is_known else None


def _listed(column: Any) -> list[str]:
    """A column of JSON, which some databases do not decode by themselves."""
    listed: list[str] = json.loads(column) if isinstance(column, str) else column
    return listed
