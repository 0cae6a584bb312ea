"""Errors of a command that is to be started: its text, the rules for it, and the start itself."""

from collections.abc import Sequence
from typing import ClassVar

from projects.errors.base import ControllerActionError, Forbidden, InvalidInput, Unavailable, listed
from projects.errors.shown_tools import said


class EmptyCommand(InvalidInput):
    """The command line has nothing to run."""

    code = "EMPTY_COMMAND"
    hint = "Give the command line to run, such as 'python3 -q'."

    def __init__(self) -> None:
        super().__init__("the command is empty")


class CommandHasNul(InvalidInput):
    """The command, its directory or its environment contains a NUL character."""

    code = "COMMAND_HAS_NUL"
    hint = "Remove the NUL character from the command, its directory and its environment."

    def __init__(self) -> None:
        super().__init__("the command contains a NUL character")


class CommandNotAllowed(Forbidden):
    """The project has a list of allowed commands, and this command is not on it."""

    code = "COMMAND_NOT_ALLOWED"

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        self.hint = (
            "Use plain commands (words, quotes, |, &&, ||, ;) of these programs: " + listed(allowed)
            if allowed
            else "No command is allowed in this project; ask its operator."
        )
        super().__init__(message)


class CwdNotAllowed(Forbidden):
    """The project limits where programs may start, and this directory is outside of it."""

    code = "CWD_NOT_ALLOWED"

    def __init__(self, allowed: Sequence[str]) -> None:
        self.hint = "Give a directory in one of these, or none: " + listed(allowed)
        super().__init__("programs may not be started in this directory")


class StartFailed(ControllerActionError):
    """The host could not start the program; ``code`` is the host's reason, a key of ``HINTS``."""

    status = 422
    HINTS: ClassVar[dict[str, str]] = {
        "PROGRAM_NOT_FOUND": (
            "Check the spelling, give an absolute path, or install the program first."
        ),
        "PROGRAM_NOT_EXECUTABLE": "Give it execute permission or name its interpreter.",
        "COMMAND_NOT_ALLOWED": (
            "The host's policy has the last word. Use plain commands (words, quotes, |, &&, "
            "||, ;) that it allows."
        ),
        "CWD_NOT_ALLOWED": (
            "The host's policy says where programs may be started; give another directory, or none."
        ),
        "CWD_NOT_FOUND": (
            "Give an existing directory, open to the user that programs run as, or none."
        ),
        "RESOURCE_EXHAUSTED": (
            "The host is out of processes, memory, terminals, files or disk space. End a "
            "program, or try later."
        ),
        "ENV_NOT_ALLOWED": (
            "Leave this variable out: it would make programs load or run other code. Set it "
            "inside the command if you must."
        ),
        "START_FAILED": (
            "The message says what the host reported. Correct the command if it is at "
            "fault; otherwise ask the host's operator."
        ),
        "HOST_STOPPED": "The operator of the host has stopped it; ask them, or use another host.",
        "CHANGED_SINCE_APPROVAL": (
            "Look at it again. To ask again, make the call under a new request id."
        ),
        "REVOKED": "It was not started: the host's credential or the API token was revoked before.",
        "EXPIRED": (
            "The host did not take the command in time and will not start it. Send the same "
            "call again."
        ),
    }

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.hint = self.HINTS.get(code, "The message says what the host reported.")
        # Nothing was started, so the same request_id may try again. Only these two reasons pass
        # by themselves; all others need somebody to change something first.
        self.retryable = code in {"EXPIRED", "RESOURCE_EXHAUSTED"}
        super().__init__(message)


class StartUnconfirmed(Unavailable):
    """The host has not said yet whether it started the program, and may still start it.

    ``is_repeatable``: the call has a ``request_id``. Sending the call again then waits for the
    first start and starts nothing a second time.
    """

    code = "START_UNCONFIRMED"

    def __init__(self, session_id: object, *, is_repeatable: bool) -> None:
        self.retryable = is_repeatable
        self.hint = (
            (
                "Send the same call again with its request_id: that waits on and starts nothing a "
                "second time."
            )
            if is_repeatable
            else said(
                "Do not start it again before you know what became of it: it may run. "
                "get_session(session_id='{session_id}') tells."
                " || list_sessions tells. || read_output(sessionId='{session_id}') tells.",
                session_id=session_id,
            )
        )
        super().__init__(f"the host has not confirmed the start of session {session_id}")
