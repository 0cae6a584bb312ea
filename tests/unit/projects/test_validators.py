"""What the lists of a project may hold."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from projects.validators import validate_commands, validate_directories


@pytest.mark.parametrize("value", [None, [], ["*"], ["sleep", "python3:shell", "/opt/x/run"]])
def test_entries_are_accepted(value: Any) -> None:
    validate_commands(value)


@pytest.mark.parametrize("value", ["sleep", {"a": 1}, [1], ["a b"], ["./x"], ["echo", "*"], [""]])
def test_anything_else_is_no_list_of_commands(value: Any) -> None:
    with pytest.raises(ValidationError):
        validate_commands(value)


def test_directories_are_absolute() -> None:
    validate_directories(None)
    validate_directories(["/srv", "/"])
    for value in ("/srv", ["srv"], ["/srv/../etc"], ["/a\0b"], [None]):
        with pytest.raises(ValidationError):
            validate_directories(value)
