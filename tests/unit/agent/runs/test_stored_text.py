"""Whatever a model writes is stored, and nothing else is changed."""

from typing import Any

import pytest

from agent.runs.stored_text import is_storable, storable

_GONE = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("a\0b", f"a{_GONE}b"),
        ("half \ud83d", f"half {_GONE}"),
        ("\ude00\ud83d\ud83d\ude00", f"{_GONE}{_GONE}\N{GRINNING FACE}"),
        ({"k\0": ["\udc80", {"n": "\0\0"}]}, {f"k{_GONE}": [_GONE, {"n": _GONE * 2}]}),
        ([float("nan"), float("-inf")], ["NaN", "-Infinity"]),
    ],
)
def test_what_no_database_stores_is_replaced(value: Any, stored: Any) -> None:
    assert storable(value) == stored
    assert not is_storable(value)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "\N{GRINNING FACE}\x1b[0m\x7f\n",
        r"\u0000 \\u0000 \ud83d \\",
        {"a": [1, 2.5, None]},
        None,
    ],
)
def test_everything_else_stays_as_it_is(value: Any) -> None:
    assert storable(value) == value
    assert is_storable(value)
