"""The errors that a caller can see, as one tree: the root and the five kinds below it.

Every error has a stable ``code``, an HTTP status and a ``hint`` that tells the caller what to do
next. The leaves of the tree stand in files named for what they are about::

    ControllerActionError (500)     monitors.errors: FileReadError
    ├── InvalidInput (400)          calls, commands, inputs, limits, monitors.errors,
    │                               agent.errors
    ├── Unauthenticated (401)       access
    ├── Forbidden (403)             access, commands, accounts.errors, monitors.errors,
    │                               agent.errors
    ├── NotFound (404)              access, sessions, hosts, secrets, monitors.errors,
    │                               agent.errors
    ├── Conflict (409)              access, calls, hosts, sessions, inputs, limits, uncertain,
    │                               accounts.errors, monitors.errors, agent.errors
    ├── StartFailed (422)           commands
    ├── RateLimited (429)           accounts.errors
    └── Unavailable (503)           access, hosts, commands, server, uncertain,
                                    monitors.errors

A text repeats names, paths and sizes of the call, and never what was typed or any secret. A hint
advises only what the present caller can do (``projects.errors.shown_tools``).
"""

from collections.abc import Sequence
from typing import ClassVar, Final, NotRequired, TypedDict

from controller_client.protocol.sentences import sentences
from projects.errors.shown_tools import fitting

MAX_LISTED_NAMES: Final = 40
COMMON_CODES: Final = (
    "CONTROLLER_ACTION_FAILED",
    "INVALID_ARGUMENT",
    "RATE_LIMITED",
    "SCOPE_MISSING",
    "STORAGE_UNAVAILABLE",
    "UNAUTHENTICATED",
    "UNKNOWN_ARGUMENT",
)
"""The codes that every tool may answer with. Each tool declares the others that it may use."""


class ErrorBody(TypedDict):
    """The body of every error, the same wherever a caller meets it."""

    error: str
    code: str
    hint: str
    retryable: bool
    retry_after_seconds: NotRequired[int]
    approval_id: NotRequired[int]
    approval_url: NotRequired[str]
    request_id: NotRequired[str]


class ControllerActionError(Exception):
    """An action on behalf of a caller was refused or failed. Root of the tree."""

    code: str = "CONTROLLER_ACTION_FAILED"
    status: ClassVar[int] = 500
    hint: str = (
        "Check whether it was done before you send it again. If the error persists, "
        "ask the operator to look at the server's log."
    )
    retryable: bool = False
    """True if the same call, with the same ``request_id``, can succeed later without any help.

    The answer of a person who was asked already is no help: the repeat waits for it.
    """

    def body(self) -> ErrorBody:
        """The error as callers see it."""
        return {
            "error": str(self),
            "code": self.code,
            "hint": fitting(self.hint),
            "retryable": self.retryable,
        }

    def advice(self) -> str:
        """The hint for a person. It names no tools: a person has none."""
        return fitting(self.hint, ())

    def line(self) -> str:
        """The error in one line, for a person."""
        return sentences(f"{self} ({self.code})", self.advice())


class InvalidInput(ControllerActionError):
    """The call itself is wrong."""

    code = "INVALID_ARGUMENT"
    status = 400
    hint = "Correct the argument and call again."


class Forbidden(ControllerActionError):
    """The caller is known but has no right to do this."""

    code = "FORBIDDEN"
    status = 403


class NotFound(ControllerActionError):
    """The thing does not exist, or belongs to another project; the error does not say which."""

    code = "NOT_FOUND"
    status = 404


class Conflict(ControllerActionError):
    """The action does not fit the present state of the thing it is about."""

    code = "CONFLICT"
    status = 409


class Unavailable(ControllerActionError):
    """A part of the system that the call needs is away for now."""

    code = "UNAVAILABLE"
    status = 503
    retryable = True


def listed(names: Sequence[str]) -> str:
    """``names`` as the end of a hint: all of them, or as many as a hint has room for."""
    return f"{shortened(names)}{'' if len(names) > MAX_LISTED_NAMES else '.'}"


def shortened(names: Sequence[str]) -> str:
    """``names`` one after the other: all of them, or as many as a text has room for."""
    shown = ", ".join(names[:MAX_LISTED_NAMES])
    return f"{shown}, … ({len(names)} in all)" if len(names) > MAX_LISTED_NAMES else shown
