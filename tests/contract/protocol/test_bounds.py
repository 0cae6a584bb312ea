"""Each field of each message takes what the reference says of its type, and nothing else.

The values are put into the full example of a message one at a time, in its parts, too.
"""

import json
import types
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from controller_client.protocol.codec import decode_any, encode
from controller_client.protocol.errors import BadFrame
from tests.contract.protocol.frame_examples import EXAMPLES
from tests.contract.protocol.reference_rows import type_text
from tests.contract.protocol.test_reference import PAGE

Place = tuple[str | int, ...]
BY_TAG = {str(example.__struct_config__.tag): example for example in EXAMPLES}
# By the words of the reference. What no type takes is added to each.
RIGHT: dict[str, tuple[object, ...]] = {
    "count": (0, 2**62),
    "pid": (0, 2**31 - 1),
    "exit code": (-(2**31), 2**31 - 1),
    "integer": (1, 2**31),
    "number": (1, 0.5),
    "string": ("", "\u202e", "a" * 1000),
    "base64": ("", "AA==", "/+8="),
    "boolean": (True, False),
}
WRONG: dict[str, tuple[object, ...]] = {
    "count": (-1, 2**62 + 1, 0.5, "1", True),
    "pid": (-1, 2**31, 0.5, "1", True),
    "exit code": (-(2**31) - 1, 2**31, "1", False),
    "integer": (0.5, "1", True),
    "number": ("1", True),
    "string": (1, True),
    "base64": ("*", "AA=", 1, "\u00e9"),
    "boolean": (0, 1, "true"),
}


def _fields(kind: Any, value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    """Yield the place and the type of each field, and of each item of a list, of an example."""
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        yield from _parts(hints[field.name], value[field.name], (*place, field.name))


def _parts(hint: Any, value: Any, place: Place) -> Iterator[tuple[Place, Any]]:
    yield place, hint
    inner = _without_null(hint)
    if get_origin(inner) is list and value:
        yield from _parts(get_args(inner)[0], value[0], (*place, 0))
    elif isinstance(inner, type) and issubclass(inner, msgspec.Struct) and value is not None:
        yield from _fields(inner, {**_defaults(inner), **value}, place)


def _defaults(kind: type[msgspec.Struct]) -> dict[str, object]:
    """What an example may leave out."""
    return {
        field.name: msgspec.to_builtins(field.default)
        for field in msgspec.structs.fields(kind)
        if not field.required and field.default is not msgspec.NODEFAULT
    }


def _without_null(hint: Any) -> Any:
    if get_origin(hint) in {types.UnionType, Union}:
        (inner,) = (one for one in get_args(hint) if one is not types.NoneType)
        return inner
    return hint


def _values(hint: Any) -> tuple[list[object], list[object]]:
    """Return what a field of this type takes, and what it does not."""
    inner, never = _without_null(hint), [{"x": 1}, [[]]]
    right, wrong = ([None], []) if inner is not hint else ([], [None])
    words = type_text(inner)
    if words in RIGHT:
        return right + list(RIGHT[words]), wrong + list(WRONG[words]) + never
    if get_origin(inner) is Literal:
        return right + list(get_args(inner)), [*wrong, "", "SEKRET", 1, *never]
    if get_origin(inner) is list:
        return [*right, []], [*wrong, "", 1, {}]
    if get_origin(inner) is dict:
        return [*right, {}, {"": ""}], [*wrong, "", 1, [], {"x": 1}, {"x": None}]
    return right, [*wrong, "", 1, [], True]


def _with(frame: Any, place: Place, value: object) -> bytes:
    """Return the frame with the value in the place."""
    changed = part = deepcopy(frame)
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    return json.dumps(changed).encode()


@pytest.mark.parametrize("tag", sorted(BY_TAG))
def test_a_field_takes_what_the_reference_says_and_nothing_else(tag: str) -> None:
    example = BY_TAG[tag]
    frame = json.loads(encode(example))
    places = list(_fields(type(example), frame, ()))
    assert {place[0] for place, _ in places} >= {"v", "id", "epoch"}
    for place, hint in places:
        right, wrong = _values(hint)
        for value in right:
            if place[-1] not in NARROWER or value is None:
                decode_any.decode(_with(frame, place, value))
        for value in wrong:
            with pytest.raises(BadFrame) as refused:
                decode_any.decode(_with(frame, place, value))
            assert "SEKRET" not in str(refused.value)


# The reference gives these fields bounds of their own.
NARROWER = {
    "heartbeat_seconds": (0.01, 0.009),
    "session_window_bytes": (1, 0),
    "connection_window_bytes": (1, 0),
}


@pytest.mark.parametrize("field", NARROWER)
def test_a_bound_of_welcome_is_the_one_in_the_reference(field: str) -> None:
    frame = json.loads(encode(BY_TAG["WELCOME"]))
    least, too_little = NARROWER[field]
    decode_any.decode(_with(frame, (field,), least))
    with pytest.raises(BadFrame, match=field):
        decode_any.decode(_with(frame, (field,), too_little))
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| `{field}` |"))
    assert f"at least {least:g}" in row


@pytest.mark.parametrize("tag", sorted(BY_TAG))
def test_a_field_that_nobody_knows_changes_nothing_wherever_it_is(tag: str) -> None:
    example = BY_TAG[tag]
    frame = json.loads(encode(example))
    more = deepcopy(frame)
    for place, hint in _fields(type(example), frame, ()):
        inner = _without_null(hint)
        part: Any = more
        for step in place:
            part = part.get(step) if isinstance(part, dict) else part[step]
        if isinstance(part, dict) and isinstance(inner, type):
            part["of_a_later_version"] = {"deep": [None]}
    more["of_a_later_version"] = 1
    assert decode_any.decode(json.dumps(more)) == decode_any.decode(json.dumps(frame)) == example


def test_the_page_says_the_bounds_of_its_words() -> None:
    said = " ".join(PAGE.split())
    assert (
        "A *count* is an integer from 0 to 2^62; a *pid* from 0 to 2^31 - 1; an *exit code* is a "
        "signed 32-bit integer."
    ) in said
