"""Refusals that name things stay short, however many things there are."""

import pytest

from projects.errors.base import MAX_LISTED_NAMES, ControllerActionError
from projects.errors.commands import CommandNotAllowed, CwdNotAllowed
from projects.errors.hosts import ControllerAmbiguous, ControllerNotFound
from projects.errors.limits import SessionLimitReached
from projects.errors.secrets import SecretNotFound
from projects.monitors.errors import PathNotAllowed

MANY = [f"name-{number:04}" for number in range(5000)]
FEW = MANY[:MAX_LISTED_NAMES]


def _refusals(names: list[str]) -> list[ControllerActionError]:
    return [
        ControllerAmbiguous(names),
        ControllerNotFound("x" * 5000, names),
        CommandNotAllowed("it is not on the list", names),
        CwdNotAllowed(names),
        SecretNotFound("x" * 5000, names),
        PathNotAllowed(names),
        *(
            SessionLimitReached(len(names), names, "project", kind=kind)
            for kind in SessionLimitReached.ENDING
        ),
    ]


@pytest.mark.parametrize("refused", _refusals(MANY), ids=lambda refused: type(refused).__name__)
def test_a_refusal_names_some_of_many_and_how_many_there_are(
    refused: ControllerActionError,
) -> None:
    body = refused.body()
    assert len(body["error"]) + len(body["hint"]) < 1500
    said = body["error"] + body["hint"]
    assert MANY[0] in said
    assert MANY[-1] not in said
    assert "(5000 in all)" in said or isinstance(refused, SecretNotFound)


@pytest.mark.parametrize("refused", _refusals(FEW), ids=lambda refused: type(refused).__name__)
def test_a_refusal_names_all_of_few(refused: ControllerActionError) -> None:
    said = refused.body()["error"] + refused.body()["hint"]
    assert [name for name in FEW if name not in said] == []
    assert "in all" not in said
    assert refused.body()["hint"].endswith(".")
