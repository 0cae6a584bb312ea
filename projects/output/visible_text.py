r"""Makes characters visible that cannot be seen.

A model should not read unnoticed what a person does not see on a screen.

Covers bidirectional controls, zero-width and tag characters, fillers, variation selectors and line
separators in disguise. Each is spelled out as ``\u{202e}``. What ordinary text needs stays where it
does its work: a joiner (ZWJ, ZWNJ) between two letters of a script other than ASCII or between two
pictures, one emoji variation selector behind the character it belongs to, and a Mongolian one
behind its letter. Pure; cost linear in the text.
"""

import re
import unicodedata
from typing import Any, Final

import msgspec

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# All but tab and line feed, which are the shape of a text.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# JSON has control characters as escapes; those of tab and line feed are not meant.
_ODD_IN_JSON: Final = (rb"\b", rb"\f", rb"\r", rb"\u")
_JOINERS: Final = "\u200c\u200d"
_EMOJI_SELECTORS: Final = "\ufe0e\ufe0f"
_KEYCAP: Final = "\u20e3"
_MONGOLIAN_SELECTORS: Final = "\u180b\u180c\u180d\u180f"


def visible(text: str) -> str:
    """``text`` with every unseen character spelled out, but for those at their ordinary work."""
    return text if text.isascii() else _UNSEEN.sub(_shown, text)


def without_controls(text: str) -> str:
    """``text`` as ``visible`` shows it, with control characters spelled out, too.

    Nothing in the result acts on a terminal it is printed to.
    """
    return visible(_CONTROLS.sub(_spelled_out, text))


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


def _spelled_out(found: "re.Match[str]") -> str:
    return f"\\u{{{ord(found[0]):04x}}}"


def _shown(found: "re.Match[str]") -> str:
    char, text = found[0], found.string
    before = text[found.start() - 1] if found.start() else ""
    after = text[found.end() : found.end() + 1]
    if char in _JOINERS:
        is_needed = _is_joined(before, is_before=True) and _is_joined(after, is_before=False)
    elif char in _EMOJI_SELECTORS:
        is_needed = (
            after == _KEYCAP
            if before.isascii()
            else unicodedata.category(before)[0] in "LNPS" and not _UNSEEN.match(before)
        )
    else:
        is_needed = char in _MONGOLIAN_SELECTORS and "\u1820" <= before <= "\u18aa"
    return char if is_needed else _spelled_out(found)


def _is_joined(char: str, *, is_before: bool) -> bool:
    """True if a joiner beside ``char`` has work to do.

    It has beside letters and marks of a script, beside symbols, and after an emoji's selector.
    """
    if not char or char.isascii():
        return False
    if _UNSEEN.match(char):
        return is_before and char in _EMOJI_SELECTORS
    return unicodedata.category(char)[0] in "LM" or unicodedata.category(char) in {"So", "Sk"}
