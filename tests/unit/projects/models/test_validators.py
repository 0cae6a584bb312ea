"""Validators of the lists and objects of a project's policy."""

import math
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from projects.models.validators import (
    validate_attention,
    validate_commands,
    validate_directories,
    validate_limits,
)


@pytest.mark.parametrize("value", [None, [], ["*"], ["sleep", "python3:shell", "/opt/x/run"]])
def test_entries_are_accepted(value: Any) -> None:
    validate_commands(value)


@pytest.mark.parametrize(
    "value",
    [
        *("sleep", "", {}, {"a": 1}, False, 0),
        *([1], ["echo", None], ["a b"], ["./x"], ["echo", "*"], [""], ["\ud800"], ["a\0"]),
    ],
)
def test_anything_else_is_no_list_of_commands(value: Any) -> None:
    with pytest.raises(ValidationError):
        validate_commands(value)


def test_directories_are_absolute() -> None:
    validate_directories(None)
    validate_directories(["/srv", "/"])
    names = (["srv"], ["/srv/../etc"], ["/a\0b"], ["/\ud800"], [""], [None])
    for value in ("/srv", "", {}, *names):
        with pytest.raises(ValidationError):
            validate_directories(value)


def test_limits_go_by_their_names() -> None:
    for value in (None, {}, {"processes": 1}, {"memory_bytes": None, "open_files": 2**62}):
        validate_limits(value)
    for value in (
        [],
        "",
        {"cpus": 1},
        {"\ud800": 1},
        {"processes": 0},
        {"processes": True},
        {"processes": "5"},
        {"open_files": 2**63},
        {"open_files": 1.5},
        {"processes": math.inf},
    ):
        with pytest.raises(ValidationError):
            validate_limits(value)


def test_attention_goes_by_kinds_and_seconds() -> None:
    for value in (None, {}, {"secret_wanted": 0}, {"resolved": 2.5, "host_away": 86_400}):
        validate_attention(value)
    numbers = ({"secret_wanted": -1}, {"secret_wanted": math.nan})
    for value in ([], "", {"secret": 1}, *numbers, {"host_away": "5"}, {"resolved": True}):
        with pytest.raises(ValidationError):
            validate_attention(value)
