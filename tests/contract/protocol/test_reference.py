"""The reference page lists every message, field, close code, limit and key, and no other."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from controller_client.protocol import messages
from controller_client.protocol.keys import KEY_NAMES
from controller_client.protocol.messages import AnyMessage, Message
from tests.contract.protocol.reference_rows import (
    close_code_rows,
    directions,
    field_rows,
    limit_rows,
)

PAGE = (Path(__file__).parents[3] / "docs/reference/protocol.md").read_text()
MESSAGES: dict[str, type[Message]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(AnyMessage)
}
PARTS: dict[str, type[msgspec.Struct]] = {
    name: kind
    for name, kind in vars(messages).items()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and not issubclass(kind, Message)
}


def _section(heading: str) -> str:
    """The text below a heading, up to the next one of any level."""
    found = re.search(
        rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
    assert found, f"the page has no heading {heading!r}"
    return found[1]


def _rows(heading: str) -> list[str]:
    return [line for line in _section(heading).splitlines() if re.match(r"\| (`|\d)", line)]


def _assert_rows(heading: str, expected: dict[str, str]) -> None:
    """Same rows in the same order; what follows the fixed beginning is prose."""
    rows = _rows(heading)
    assert [row[: len(start)] for row, start in zip(rows, expected.values(), strict=False)] == list(
        expected.values()
    )
    assert len(rows) == len(expected)


def test_the_page_has_exactly_the_messages_and_parts_there_are() -> None:
    headings = set(re.findall(r"^### (.+)$", PAGE, re.MULTILINE))
    assert headings == MESSAGES.keys() | PARTS.keys()


@pytest.mark.parametrize("tag", sorted(MESSAGES))
def test_a_message_is_listed_with_its_directions_and_every_field(tag: str) -> None:
    assert _section(tag).strip().startswith(f"{directions(MESSAGES[tag])}. ")
    _assert_rows(tag, field_rows(MESSAGES[tag]))


@pytest.mark.parametrize("name", sorted(PARTS))
def test_a_part_of_messages_is_listed_with_every_field(name: str) -> None:
    _assert_rows(name, field_rows(PARTS[name]))


def test_the_envelope_is_listed() -> None:
    _assert_rows("Envelope", field_rows(Message))


def test_every_close_code_is_listed() -> None:
    _assert_rows("Close codes", close_code_rows())


def test_every_limit_is_listed_with_its_value() -> None:
    _assert_rows("Limits", limit_rows())


def test_every_key_is_listed() -> None:
    listed = re.findall(r"^`.*`$", _section("Keys"), re.MULTILINE)
    assert re.findall(r"`([^`]+)`", " ".join(listed)) == list(KEY_NAMES)
