"""What a caller can be told, as a tree. Each leaf has a stable ``code``, an HTTP status, and a hint that says what to do next::

    ControllerActionError
    ├── InvalidInput (400)          InvalidArgument, UnknownArgument, UnknownTool, UnknownToolset, EmptyCommand, CommandHasNul, UnknownKey,
    │                           UnknownSignal, InputTooLarge,
    │                           InvalidPattern
    ├── Unauthenticated (401)
    ├── RateLimited (429)
    ├── Forbidden (403)             EnrolmentRefused, ScopeMissing, CommandNotAllowed, CwdNotAllowed
    ├── NotFound (404)              SessionNotFound, ControllerNotFound, NoControllerEnrolled, SecretNotFound
    ├── Conflict (409)              SessionLimitReached, SessionEnded, SessionTakenOver, SessionActive, RequestIdReused,
    │                           ControllerAmbiguous, InputRefused,
    │                           CredentialLimitReached
    ├── StartFailed (422)
    └── Unavailable (503)           ControllerOffline, StartUnconfirmed, StorageUnavailable

Texts are built from the fields; no text contains input values.
"""

from collections.abc import Sequence
from typing import ClassVar, NotRequired, TypedDict


class ErrorBody(TypedDict):
    """The one body of every error, wherever it is shown."""

    error: str
    code: str
    hint: str
    retryable: bool
    retry_after_seconds: NotRequired[int]


class ControllerActionError(Exception):
    """Root. An action on behalf of a caller was refused or failed; nothing was left half done."""

    code: str = "CONTROLLER_ACTION_FAILED"
    status: ClassVar[int] = 500
    hint: str = "Try again; if it goes on, ask the operator to look at the server's log."
    retryable: bool = False

    def body(self) -> ErrorBody:
        """The error as callers see it."""
        return {"error": str(self), "code": self.code, "hint": self.hint, "retryable": self.retryable}


class InvalidInput(ControllerActionError):
    """The call itself is wrong."""

    code = "INVALID_ARGUMENT"
    status = 400
    hint = "Correct the argument and call again."


class InvalidArgument(InvalidInput):
    """One or more arguments have a wrong type or value; ``problems`` are ``name: what is wrong`` without values."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("invalid arguments: " + "; ".join(self.problems))


class UnknownArgument(InvalidInput):
    """The tool has no such argument."""

    code = "UNKNOWN_ARGUMENT"

    def __init__(self, tool: str, unknown: Sequence[str], known: Sequence[str]) -> None:
        self.unknown, self.known = tuple(unknown), tuple(known)
        self.hint = f"Arguments of {tool}: {', '.join(known) or 'none'}."
        super().__init__(f"{tool} has no argument {', '.join(repr(name) for name in unknown)}")


class UnknownTool(InvalidInput):
    """No tool has this name."""

    code = "UNKNOWN_TOOL"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.hint = f"Tools: {', '.join(known)}."
        super().__init__(f"there is no tool {name!r}")


class UnknownToolset(InvalidInput):
    """No set of tools has this name."""

    code = "UNKNOWN_TOOLSET"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.hint = f"Toolsets: {', '.join(known)}. Leave toolsets out for everything."
        super().__init__(f"there is no toolset {name!r}")


class EmptyCommand(InvalidInput):
    """Nothing to run."""

    code = "EMPTY_COMMAND"
    hint = "Give the command line to run, such as 'python3 -q'."

    def __init__(self) -> None:
        super().__init__("the command is empty")


class CommandHasNul(InvalidInput):
    """A command line cannot carry NUL."""

    code = "COMMAND_HAS_NUL"
    hint = "Remove the NUL character from the command, its directory and its environment."

    def __init__(self) -> None:
        super().__init__("the command contains a NUL character")


class UnknownKey(InvalidInput):
    """A key name is not known."""

    code = "UNKNOWN_KEY"

    def __init__(self, key: str, known: Sequence[str]) -> None:
        self.key = key
        self.hint = (
            f"Keys: {', '.join(known)}; also ctrl-a to ctrl-z, f1 to f12, single characters and alt-<character>. Text goes into input_text."
        )
        super().__init__(f"there is no key named {key[:32]!r}")


class UnknownSignal(InvalidInput):
    """There is no signal of this name."""

    code = "UNKNOWN_SIGNAL"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.hint = f"Signals: {', '.join(known)}."
        super().__init__(f"there is no signal named {name[:32]!r}")


class InputTooLarge(InvalidInput):
    """More than one input may carry."""

    code = "INPUT_TOO_LARGE"
    status = 413
    hint = "Send it in several inputs, or put the data into a file on the host."

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes
        super().__init__(f"the input has {size_bytes} bytes; at most {limit_bytes} can be sent at once")


class InvalidPattern(InvalidInput):
    """An argument is not a usable regular expression."""

    code = "INVALID_PATTERN"
    hint = "Use RE2 syntax: no look-around and no back-references."

    def __init__(self, reason: str, argument: str = "wait_for") -> None:
        self.reason = reason
        super().__init__(f"{argument} is not a valid regular expression: {reason}")


class Unauthenticated(ControllerActionError):
    """No valid credential was shown."""

    code = "UNAUTHENTICATED"
    status = 401
    hint = "Send 'Authorization: Bearer <API token>' with a token that has not expired or been revoked."

    def __init__(self, reason: str = "a valid API token is required") -> None:
        super().__init__(reason)


class Forbidden(ControllerActionError):
    """The caller is known and may not do this."""

    code = "FORBIDDEN"
    status = 403


class ScopeMissing(Forbidden):
    """The token lacks a scope."""

    code = "SCOPE_MISSING"

    def __init__(self, scope: str) -> None:
        self.scope = scope
        self.hint = f"Use a token with the scope {scope}."
        super().__init__(f"this needs the scope {scope}")


class CommandNotAllowed(Forbidden):
    """A list of allowed commands is in force, and the command is not on it."""

    code = "COMMAND_NOT_ALLOWED"

    def __init__(self, message: str, allowed: Sequence[str]) -> None:
        self.hint = (
            "Use plain commands (words, quotes, |, &&, ||, ;) of these programs: " + _some(allowed)
            if allowed
            else "No command is allowed in this project; ask its operator."
        )
        super().__init__(message)


class CwdNotAllowed(Forbidden):
    """Programs may be started in some directories only, and this is not in one of them."""

    code = "CWD_NOT_ALLOWED"

    def __init__(self, allowed: Sequence[str]) -> None:
        self.hint = "Give a directory in one of these, or none: " + _some(allowed)
        super().__init__("programs may not be started in this directory")


def _some(names: Sequence[str]) -> str:
    """The names, or as many as a hint has room for."""
    shown = ", ".join(names[:40])
    return f"{shown}, … ({len(names)} in all)" if len(names) > 40 else f"{shown}."


class NotFound(ControllerActionError):
    """There is no such thing, or it is not the caller's; the two are not told apart."""

    code = "NOT_FOUND"
    status = 404


class SessionNotFound(NotFound):
    """No such session in the caller's project."""

    code = "SESSION_NOT_FOUND"
    hint = "list_sessions shows the sessions of your project."

    def __init__(self, session_id: object) -> None:
        super().__init__(f"Session {session_id} not found")


class ControllerNotFound(NotFound):
    """No such controller in the caller's project."""

    code = "CONTROLLER_NOT_FOUND"
    hint = "list_controllers shows the controllers of your project."

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no controller {name[:64]!r}")


class NoControllerEnrolled(NotFound):
    """The project has no host yet."""

    code = "NO_CONTROLLER"
    status = 409
    hint = "Enrol a host first: manage.py create_controller, then run holdline-controller on it."

    def __init__(self) -> None:
        super().__init__("no host is enrolled in this project")


class SecretNotFound(NotFound):
    """The project has no secret of this name that may be typed into this session. Which of it is not told."""

    code = "SECRET_NOT_FOUND"
    hint = (
        "Nothing was typed. If you were given the value, send it as input_text while the terminal asks for it; otherwise ask the operator."
    )

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no secret {name[:64]!r} for this session")


class Conflict(ControllerActionError):
    """The action does not fit the present state."""

    code = "CONFLICT"
    status = 409


class ControllerAmbiguous(Conflict):
    """Several controllers, none named."""

    code = "CONTROLLER_AMBIGUOUS"

    def __init__(self, names: Sequence[str]) -> None:
        self.hint = f"Say which one with controller=: {', '.join(names)}."
        super().__init__("this project has several controllers")


class SessionLimitReached(Conflict):
    """The project's places for sessions of this kind are all in use."""

    code = "SESSION_LIMIT_REACHED"
    ENDING: ClassVar[dict[str, str]] = {
        "interactive": "Go on with the active session or end it: send_command_input(session_id={!r}, terminate=true).",
        "background": "End one that is no longer needed: stop_command(sessionId={!r}).",
        "one_shot": "Wait until one of them has ended, then try again.",
        "job": "Wait for one to complete: query_command_status(token={!r}).",
    }

    def __init__(self, limit: int, active: Sequence[str], *, kind: str = "interactive") -> None:
        self.limit, self.active, self.kind = limit, tuple(active), kind
        self.hint = self.ENDING[kind].format(active[0]) if active else self.hint
        super().__init__(f"this project may have {limit} active {kind} session(s); active: {', '.join(active)}")


class SessionEnded(Conflict):
    """The program is gone; input cannot reach it."""

    code = "SESSION_ENDED"
    hint = "read_session_output shows what it printed; start a new session to go on."

    def __init__(self, session_id: object, state: str) -> None:
        super().__init__(f"session {session_id} has ended ({state})")


class SessionTakenOver(Conflict):
    """A person has taken the session over and types there; nothing of this input was."""

    code = "SESSION_TAKEN_OVER"
    hint = (
        "A person is typing there. Wait on until the session is handed back: send_command_input(input_text='', wait_seconds=30)"
        " returns then. Do not start the same work elsewhere."
    )

    def __init__(self, session_id: object, operator: str) -> None:
        super().__init__(f"session {session_id} was taken over by {operator}")


class SessionActive(Conflict):
    """The program still runs; its output cannot be taken away from under it."""

    code = "SESSION_ACTIVE"
    hint = "Wait until it ends, or terminate it first."

    def __init__(self, session_id: object) -> None:
        super().__init__(f"session {session_id} is still active")


class RequestIdReused(Conflict):
    """Same request_id, different body."""

    code = "REQUEST_ID_REUSED"
    hint = "Use a fresh uuid for a new action; repeat a request_id only to retry the same one."

    def __init__(self) -> None:
        super().__init__("this request_id was already used for a different call")


class InputRefused(Conflict):
    """The host refused an input as a whole; nothing of it reached the program."""

    HINTS: ClassVar[dict[str, str]] = {
        "COMMAND_NOT_ALLOWED": "The host's policy has the last word. Type whole lines of plain commands that it allows.",
        "INPUT_LINE_TOO_LONG": "The terminal would cut this line silently. Split it, or put the data into a file.",
        "INPUT_BLOCKED": "The program does not read its input. Wait, send ctrl-c, or terminate it.",
        "INPUT_OUT_OF_ORDER": "An earlier input is missing on the host; look at the session before you go on.",
        "NOT_ASKING_FOR_SECRET": "The terminal is not asking for a secret now; read the output first.",
        "NOT_A_TERMINAL": "The program runs on pipes. Send ctrl-c alone, ctrl-d last, and start a terminal for anything more.",
        "HOST_STOPPED": "The operator of the host has stopped it. The session can still be read and terminated.",
        "REVOKED": "Nothing of it was typed: the host's credential or the API token was revoked before.",
        "STDIN_CLOSED": "The program's input is at its end. Read its output, or start it again.",
        "SESSION_ENDED": SessionEnded.hint,
    }

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.hint = self.HINTS.get(code, Conflict.hint)
        super().__init__(message)


class StartFailed(ControllerActionError):
    """The host could not start the program; ``code`` says why (START_FAILED, PROGRAM_NOT_FOUND, CWD_NOT_FOUND, …)."""

    status = 422
    HINTS: ClassVar[dict[str, str]] = {
        "PROGRAM_NOT_FOUND": "Check the spelling, give an absolute path, or install the program first.",
        "PROGRAM_NOT_EXECUTABLE": "Give it execute permission or name its interpreter.",
        "COMMAND_NOT_ALLOWED": "The host's policy has the last word. Use plain commands (words, quotes, |, &&, ||, ;) that it allows.",
        "CWD_NOT_ALLOWED": "The host's policy says where programs may be started; give another directory, or none.",
        "CWD_NOT_FOUND": "Give an existing directory the daemon's user may enter, or none.",
        "RESOURCE_EXHAUSTED": "The host has no room for another program (processes, memory, terminals or files); end some first.",
        "ENV_NOT_ALLOWED": "Leave this variable out: it would make programs load or run other code. Set it inside the command if you must.",
        "START_FAILED": "The message says what the host reported; correct the command and start it again.",
        "HOST_STOPPED": "The operator of the host has stopped it; ask them, or use another host.",
        "REVOKED": "It was not started: the host's credential or the API token was revoked before.",
        "EXPIRED": "The host did not take the command in time and will not start it; try again.",
    }

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.hint = self.HINTS.get(code, "The message says what the host reported.")
        self.retryable = code in {"EXPIRED", "RESOURCE_EXHAUSTED"}
        super().__init__(message)


class Unavailable(ControllerActionError):
    """Something needed is away for now."""

    code = "UNAVAILABLE"
    status = 503
    retryable = True


class ControllerOffline(Unavailable):
    """The host is enrolled but not connected."""

    code = "CONTROLLER_OFFLINE"

    def __init__(self, name: str) -> None:
        self.hint = (
            f"Start the daemon on {name} (holdline-controller run) or wait for it to reconnect; list_controllers shows who is online."
        )
        super().__init__(f"the host {name} is offline")


class StartUnconfirmed(Unavailable):
    """The host has not said yet whether it started the program; it may still do so, for as long as a start is good."""

    code = "START_UNCONFIRMED"
    retryable = False

    def __init__(self, session_id: object) -> None:
        self.hint = f"get_session(session_id='{session_id}') tells what became of it; do not start it again before you have looked."
        super().__init__(f"the host has not confirmed the start of session {session_id}")


class ServerStopping(Unavailable):
    """The process of the server is being stopped and takes no new call."""

    code = "SERVER_STOPPING"
    hint = "Nothing was done. Send the call again."

    def __init__(self) -> None:
        super().__init__("the server is being stopped or replaced")


class StorageUnavailable(Unavailable):
    """The database did not take the write."""

    code = "STORAGE_UNAVAILABLE"
    hint = "Nothing was done. Try again in a moment."

    def __init__(self) -> None:
        super().__init__("the server's storage is unavailable")
