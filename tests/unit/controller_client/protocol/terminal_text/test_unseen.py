"""Characters that cannot be seen are spelled out; what ordinary text needs stays."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.terminal_text.unseen import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb\u202c", "a\\u{202e}b\\u{202c}"),
        ("\u2066x\u2069", "\\u{2066}x\\u{2069}"),
        ("pass\u200bword", "pass\\u{200b}word"),
        ("\ufeffbom", "\\u{feff}bom"),
        ("".join(chr(0xE0000 + ord(char)) for char in "hi"), "\\u{e0068}\\u{e0069}"),
        ("ad\u200dmin", "ad\\u{200d}min"),
        ("x\ufe0f", "x\\u{fe0f}"),
        ("\U0001f600\ufe01\U000e0110", "\U0001f600\\u{fe01}\\u{e0110}"),
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f\\u{fe0f}"),
        ("one\u2028two", "one\\u{2028}two"),
        ("\u3164\u115f", "\\u{3164}\\u{115f}"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain ascii\n\t",
        "Größe, ελληνικά, עברית, العربية, 漢字, 한국어",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: a non-joiner between letters
        "\u0915\u094d\u200d\u0937",  # Devanagari: a joiner behind a virama
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",  # a family
        "\u2764\ufe0f\u200d\U0001f525",  # a heart on fire
        "1\ufe0f\u20e3",  # a keycap
        "\u1820\u180b\u1821",  # Mongolian
    ],
)
def test_ordinary_text_and_pictures_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


@given(st.text())
def test_nothing_that_reorders_or_hides_remains(text: str) -> None:
    bidirectional = {"RLE", "LRE", "RLO", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI"}
    shown = visible(text)
    assert not any(unicodedata.bidirectional(char) in bidirectional for char in shown)
    assert not any(0xE0000 <= ord(char) <= 0xE0FFF for char in shown)
    assert visible(shown) == shown


# Signs that stand before a number or a word of their script, and are seen there.
_SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}


def test_every_format_character_of_unicode_is_spelled_out_in_ascii() -> None:
    unseen = [
        number
        for number in range(sys.maxunicode + 1)
        if unicodedata.category(chr(number)) in {"Cf", "Zl", "Zp"} and number not in _SEEN
    ]
    assert len(unseen) > 150
    for number in unseen:
        assert visible(f"a{chr(number)}b") == f"a\\u{{{number:04x}}}b"
    # The variation selectors, of which a run can hide a text, and the tags.
    for number in (*range(0xFE00, 0xFE0E), *range(0xE0000, 0xE0200)):
        assert visible(f"\u263a{chr(number)}") == f"\u263a\\u{{{number:04x}}}"
