"""Makes every text in a JSON value visible. Pure; cost linear in the value."""

from typing import Any, Final

import msgspec

from controller_client.protocol.terminal_text.unseen import without_controls

# JSON has control characters as escapes; those of tab and line feed are not meant.
_ODD_IN_JSON: Final = (rb"\b", rb"\f", rb"\r", rb"\u")


def shown_in(value: Any, kept: frozenset[str] = frozenset()) -> Any:
    """A JSON value with every text and every member's name as ``without_controls`` shows it.

    The values of members in ``kept`` stay as they are.
    """
    return value if _is_plain(value) else _spelled_out_in(value, kept)


def _is_plain(value: Any) -> bool:
    """True if all of it is ASCII that prints: one look at its JSON tells, and most values are."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    if not encoded.isascii() or b"\x7f" in encoded:
        return False
    # A search stops at each backslash, and the ends of lines are most of them.
    has_only_line_feeds = encoded.count(b"\\") == encoded.count(rb"\n")
    return has_only_line_feeds or not any(odd in encoded for odd in _ODD_IN_JSON)


def _spelled_out_in(value: Any, kept: frozenset[str]) -> Any:
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [_spelled_out_in(item, kept) for item in value]
    if isinstance(value, dict):
        return {
            without_controls(name): item if name in kept else _spelled_out_in(item, kept)
            for name, item in value.items()
        }
    return value
