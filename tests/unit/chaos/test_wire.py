"""The refusals that the harness knows are those of the product."""

import inspect

from chaos.wire import AGAIN_UNDER_A_NEW_ID, Reply
from projects.errors import (
    access,
    base,
    calls,
    commands,
    hosts,
    inputs,
    limits,
    secrets,
    server,
    sessions,
    uncertain,
)

_MODULES = (
    access,
    base,
    calls,
    commands,
    hosts,
    inputs,
    limits,
    secrets,
    server,
    sessions,
    uncertain,
)
# A person decides about these calls, and the faults are about no calls that wait for a person.
_ASK_A_PERSON = {"APPROVAL_EXPIRED", "CHANGED_SINCE_APPROVAL"}


def _hints() -> dict[str, str]:
    """The hint of each code that has one of its own."""
    found: dict[str, str] = {}
    for module in _MODULES:
        for _name, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, base.ControllerActionError):
                found |= {kind.code: str(kind.hint), **getattr(kind, "HINTS", {})}
    return found


def test_each_refusal_that_wants_a_new_id_is_known() -> None:
    wanting = {code for code, hint in _hints().items() if "new request" in hint.replace("_", " ")}
    assert wanting == AGAIN_UNDER_A_NEW_ID | _ASK_A_PERSON


def test_only_a_refusal_wants_a_new_id() -> None:
    body: dict[str, object] = {"code": "RULES_UNREADABLE", "retryable": False}
    assert Reply("refused", body).wants_a_new_id
    assert not Reply("unknown", body).wants_a_new_id
    assert not Reply("refused", body | {"code": "INPUT_BLOCKED"}).wants_a_new_id
