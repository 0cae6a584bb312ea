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
from typing import Final

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
SPELLED_OUT: Final = r"\\u\{[0-9a-f]{4,6}\}"
"""A regular expression for such a character as ``visible`` spells it out."""
# All but tab and line feed, which are the shape of a text.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
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
