"""Errors of a session that does not exist, or whose state does not fit the call."""

from projects.errors.base import Conflict, NotFound


class SessionNotFound(NotFound):
    """The caller's project has no session of this id."""

    code = "SESSION_NOT_FOUND"
    hint = (
        "Check the id: your project has no session of this id. list_sessions shows "
        "the sessions of your project."
    )

    def __init__(self, session_id: object) -> None:
        super().__init__(f"Session {session_id} not found")


class SessionEnded(Conflict):
    """The program has ended, so input cannot reach it."""

    code = "SESSION_ENDED"
    hint = (
        "Start a new session to go on. read_session_output shows what it printed."
        " || send_command_input(input_text='') shows what you have not read yet. || read_output "
        "shows what you have not read yet."
    )

    def __init__(self, session_id: object, state: str) -> None:
        super().__init__(f"session {session_id} has ended ({state})")


class SessionTakenOver(Conflict):
    """A person has taken the session over and types there. Nothing of this input was typed."""

    code = "SESSION_TAKEN_OVER"
    hint = (
        "A person is typing there. Do not start the same work elsewhere. Wait until the session "
        "is handed back:"
        " send_command_input(input_text='', wait_seconds=30) returns then."
    )

    def __init__(self, session_id: object, operator: str) -> None:
        super().__init__(f"session {session_id} was taken over by {operator}")


class KeyboardNotHeld(Conflict):
    """An operator typed without having the keyboard. Nothing of this input was typed."""

    code = "KEYBOARD_NOT_HELD"
    hint = "Take the session over before you type."

    def __init__(self, session_id: object, operator: str) -> None:
        holder = operator or "its caller"
        super().__init__(f"the keyboard of session {session_id} belongs to {holder}")


class SessionActive(Conflict):
    """The program still runs, so its output cannot be deleted."""

    code = "SESSION_ACTIVE"
    hint = "Wait until it ends, or terminate it first."

    def __init__(self, session_id: object) -> None:
        super().__init__(f"session {session_id} is still active")
