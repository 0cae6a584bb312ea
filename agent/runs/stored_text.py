"""Text of models and programs, made safe for the rows of runs.

PostgreSQL takes no NUL, no encoding takes half of a surrogate pair, and JSON has no NaN. A model
may write each of them, and an answer that was paid for has to be stored all the same.
"""

import json
import re
from typing import Any, Final, TypeVar

T = TypeVar("T")

_ESCAPE: Final = re.compile(
    r"\\(?:u(?:d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(?P<refused>0000|d[89a-f][0-9a-f]{2}))|.)"
)


def storable(value: T) -> T:
    """The same text or JSON value, with U+FFFD for each character that cannot be stored.

    A number that JSON does not have becomes its name.
    """
    written = _ESCAPE.sub(_replaced, json.dumps(value, default=str))
    stored: T = json.loads(written, parse_constant=str)
    return stored


def is_storable(value: Any) -> bool:
    """True if the value can be stored as it is."""
    return bool(storable(value) == value)


def _replaced(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape["refused"] else escape[0]
