"""``retryable`` of every code: true only where the same call, with the same ``request_id``, can
still succeed by itself.
"""

import importlib
import inspect
from collections.abc import Iterator

import pytest

from projects.errors.base import ControllerActionError
from projects.errors.commands import StartFailed, StartUnconfirmed
from projects.errors.inputs import InputRefused
from projects.errors.limits import SessionLimitReached
from projects.tools.base import error_codes

MODULES = (
    "projects.errors.base",
    "projects.errors.access",
    "projects.errors.calls",
    "projects.errors.commands",
    "projects.errors.hosts",
    "projects.errors.inputs",
    "projects.errors.limits",
    "projects.errors.secrets",
    "projects.errors.server",
    "projects.errors.sessions",
    "projects.errors.uncertain",
    "projects.accounts.guesses",
    "projects.accounts.errors",
    "projects.monitors.errors",
    "agent.errors",
    "console.live.desk",
)

WRONG_CALL = "the call itself has to be changed"
NOT_ALLOWED = "somebody has to allow it first"
NOT_THERE = "it is not there, and nobody is making it"
STATE = "somebody has to change the present state first"
REFUSED = "the host refused this input, and that is on record under its request_id"
NOTHING_DONE = "nothing was done and nothing is on record; it passes by itself"
NOTHING_READ = "nothing was read; the next call goes on at the same place"
NEVER_BEGAN = "the start began nothing, so its request is forgotten; it passes by itself"
START_REFUSED = "its request is forgotten, too, but it lasts until somebody changes something"
UNKNOWN = "the fault lies in the server, and what was done is not known"
MAY_HAVE_RUN = "nobody can say whether it was done: a repeat would find the same, or do it twice"
WAITS_ON = "the request is on record: its repeat waits on, or finds what was done"

REASONS = {
    **dict.fromkeys(
        [
            "COMMAND_HAS_NUL",
            "EMPTY_COMMAND",
            "INVALID_ARGUMENT",
            "INVALID_PATTERN",
            "REQUEST_NOT_UNDERSTOOD",
            "MALFORMED_ARGUMENTS",
            "UNKNOWN_ARGUMENT",
            "UNKNOWN_KEY",
            "UNKNOWN_SIGNAL",
            "UNKNOWN_TOOL",
            "UNKNOWN_TOOLSET",
            "INVALID_SESSION_ID",
            "INPUT_TOO_LARGE",
            "LIFETIME_TOO_LONG",
            "CONTROLLER_AMBIGUOUS",
            "REQUEST_ID_REUSED",
        ],
        (False, WRONG_CALL),
    ),
    **dict.fromkeys(
        [
            "UNAUTHENTICATED",
            "FORBIDDEN",
            "CONTROLLER_NOT_OF_RUN",
            "SESSION_NOT_OF_RUN",
            "SCOPE_MISSING",
            "COMMAND_NOT_ALLOWED",
            "CWD_NOT_ALLOWED",
            "ENROLMENT_REFUSED",
            "DENIED_BY_OPERATOR",
            "APPROVAL_EXPIRED",
            "APPROVAL_REQUIRED",
            "OWN_CALL",
            "FILE_NOT_READABLE",
            "PATH_NOT_ALLOWED",
            "LOG_DIRECTORY_UNUSABLE",
            "LOG_DIRECTORY_FOREIGN",
        ],
        (False, NOT_ALLOWED),
    ),
    **dict.fromkeys(
        [
            "NOT_FOUND",
            "SESSION_NOT_FOUND",
            "CONTROLLER_NOT_FOUND",
            "SECRET_NOT_FOUND",
            "FILE_NOT_FOUND",
            "RUN_NOT_FOUND",
            "APPROVAL_NOT_FOUND",
        ],
        (False, NOT_THERE),
    ),
    **dict.fromkeys(
        [
            "CONFLICT",
            "NO_CONTROLLER",
            "SESSION_LIMIT_REACHED",
            "SESSION_ENDED",
            "SESSION_TAKEN_OVER",
            "KEYBOARD_NOT_HELD",
            "PROMPT_GONE",
            "SESSION_ACTIVE",
            "CREDENTIAL_LIMIT_REACHED",
            "MONITOR_LIMIT_REACHED",
            "SESSION_ALREADY_EXISTS",
            "HOST_TOO_OLD",
            "RUN_ACTIVE",
            "CHANGED_SINCE_APPROVAL",
            "CALL_NOT_SHOWN",
        ],
        (False, STATE),
    ),
    **dict.fromkeys(
        [
            "INPUT_LINE_TOO_LONG",
            "INPUT_BLOCKED",
            "INPUT_OUT_OF_ORDER",
            "NOT_ASKING_FOR_SECRET",
            "NOT_A_TERMINAL",
            "STDIN_CLOSED",
            "READER_NOT_PROVEN",
            "SECRET_NOT_FOR_READER",
            "RULES_UNREADABLE",
        ],
        (False, REFUSED),
    ),
    **dict.fromkeys(
        [
            "PROGRAM_NOT_FOUND",
            "PROGRAM_NOT_EXECUTABLE",
            "CWD_NOT_FOUND",
            "ENV_NOT_ALLOWED",
            "START_FAILED",
            "HOST_STOPPED",
            "REVOKED",
        ],
        (False, START_REFUSED),
    ),
    "CONTROLLER_REVOKED": (False, NOT_THERE),
    "PERSON_PENDING": (True, "nothing was typed; a person may type it while the next call waits"),
    **dict.fromkeys(("RESOURCE_EXHAUSTED", "EXPIRED"), (True, NEVER_BEGAN)),
    **dict.fromkeys(
        ["RATE_LIMITED", "CONTROLLER_OFFLINE", "SERVER_STOPPING", "UNAVAILABLE"],
        (True, NOTHING_DONE),
    ),
    **dict.fromkeys(("FILE_READ_ERROR", "HOST_SILENT"), (True, NOTHING_READ)),
    **dict.fromkeys(
        ("START_LOST", "INPUT_UNCONFIRMED", "REQUEST_NOT_KNOWN"), (False, MAY_HAVE_RUN)
    ),
    "APPROVAL_LIMIT_REACHED": (True, NOTHING_DONE),
    "APPROVAL_PENDING": (True, WAITS_ON),
    "STORAGE_UNAVAILABLE": (True, WAITS_ON),
    "START_UNCONFIRMED": (True, WAITS_ON),
    "CONTROLLER_ACTION_FAILED": (False, UNKNOWN),
}
"""Code -> (retryable, why). One that two errors have is the same for both."""


def _errors() -> Iterator[type[ControllerActionError]]:
    for name in MODULES:
        for _, kind in inspect.getmembers(importlib.import_module(name), inspect.isclass):
            if issubclass(kind, ControllerActionError) and kind.__module__ == name:
                yield kind


def _said() -> Iterator[tuple[str, bool]]:
    for kind in _errors():
        if issubclass(kind, StartFailed | InputRefused):
            for code in kind.HINTS:
                yield code, kind(code, "why").retryable
        elif kind is StartUnconfirmed:
            yield kind.code, StartUnconfirmed("some", is_repeatable=True).retryable
        else:
            for code in error_codes(kind):
                yield code, kind.retryable


SAID = sorted(set(_said()))


def test_every_code_has_its_reason() -> None:
    assert {code for code, _ in SAID} == set(REASONS)


@pytest.mark.parametrize(("code", "retryable"), SAID, ids=[code for code, _ in SAID])
def test_a_code_is_as_retryable_as_its_reason_allows(code: str, retryable: bool) -> None:
    assert retryable is REASONS[code][0], REASONS[code][1]


def test_without_an_id_a_start_without_word_is_not_retryable() -> None:
    assert not StartUnconfirmed("some", is_repeatable=False).retryable


@pytest.mark.parametrize("kind", SessionLimitReached.ENDING)
def test_a_place_comes_free_by_itself_where_programs_end_by_themselves(kind: str) -> None:
    refused = SessionLimitReached(1, ["some"], "project", kind=kind)
    assert refused.body()["retryable"] is (kind in {"one_shot", "job"})
    assert not SessionLimitReached(0, [], "project", kind=kind).retryable


def test_every_module_with_errors_is_looked_at() -> None:
    def below(kind: type[ControllerActionError]) -> Iterator[type[ControllerActionError]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    of_the_product = {
        kind.__module__
        for kind in below(ControllerActionError)
        if not kind.__module__.startswith("tests.")
    }
    assert of_the_product <= set(MODULES)
