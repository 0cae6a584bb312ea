"""The environment is read typed, and everything wrong with it is reported at once."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.env import Environment


def test_what_is_not_set_or_empty_is_its_default() -> None:
    environment = Environment({"A": "  "})
    assert environment.text("A", "x") == "x"
    assert environment.items("B", "1, 2,,3") == ["1", "2", "3"]
    assert environment.number("C", 7) == 7
    assert environment.seconds("D", 1.5) == 1.5
    assert environment.flag("E", default=True) is True
    assert environment.path("F", Path("/x")) == Path("/x")
    environment.finish()


def test_values_are_typed() -> None:
    environment = Environment({"N": "12", "S": "0.25", "T": "Yes", "F": "off", "P": "/data"})
    assert environment.number("N", 0) == 12
    assert environment.seconds("S", 1.0) == 0.25
    assert environment.flag("T") is True
    assert environment.flag("F", default=True) is False
    assert environment.path("P", Path()) == Path("/data")
    environment.finish()


def test_everything_that_is_wrong_is_in_one_error_without_any_value() -> None:
    environment = Environment({"N": "s3cret", "S": "nan", "M": "-1", "F": "maybe"})
    environment.number("N", 1)
    environment.seconds("S", 1.0)
    environment.number("M", 1)
    environment.flag("F")
    environment.problem("DATABASE_URL must be something")
    with pytest.raises(ImproperlyConfigured) as error:
        environment.finish()
    text = str(error.value)
    for part in (
        "N must be a whole number",
        "S must be at least 0",
        "M must be at least 0",
        "F must be true or false",
        "DATABASE_URL must",
    ):
        assert part in text
    assert "s3cret" not in text
