"""Values that others chose, made visible."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import example, given
from hypothesis import strategies as st

from projects.admin.parts.display import duration, in_full, shortened, visible


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("rm -rf /\x1b[2K", "rm -rf /\\x1b[2K"),
        ("echo \u202eevil\u202c", "echo \\u202eevil\\u202c"),
        ("a\u200bb", "a\\u200bb"),
        ("line\nnext\r", "line\\nnext\\r"),
        ("a\u2028b", "a\\u2028b"),
        ("über naïve 日本", "über naïve 日本"),
        ("\x00\x9b", "\\x00\\x9b"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(hidden: str, shown: str) -> None:
    assert visible(hidden) == shown


@pytest.mark.parametrize(
    ("lookalike", "shown"),
    [
        ("\u0455udo rm", "\\u0455udo rm"),
        ("\uff53\uff55\uff44\uff4f", "\\uff53\\uff55\\uff44\\uff4f"),
        ("\U0001d42bm -rf", "\\U0001d42bm -rf"),
        ("привет мир naïve", "привет мир naïve"),
    ],
)
def test_letters_that_pass_for_others_are_spelled_out(lookalike: str, shown: str) -> None:
    assert visible(lookalike) == shown
    assert visible(lookalike, keep="\n") == lookalike, "a transcript says what was printed"


def test_a_command_is_shown_with_its_ascii_form_where_that_differs() -> None:
    assert in_full("ls -l") == "ls -l"
    assert in_full("\u0441\u0430t x") == "\\u0441\\u0430t x  [in ASCII: \\u0441\\u0430t x]"
    assert in_full("\u0440\u0430") == "\u0440\u0430  [in ASCII: \\u0440\\u0430]"


def test_a_transcript_keeps_its_lines() -> None:
    assert visible("a\tb\n\u202ec", keep="\n\t") == "a\tb\n\\u202ec"


@given(st.text())
@example("\r\u1a00")
def test_nothing_invisible_ever_remains(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert not set(visible(text)) & {
        chr(code)
        for code in (
            *range(32),
            0x7F,
            *range(0x80, 0xA0),
            *range(0x202A, 0x202F),
            *range(0x2066, 0x206A),
        )
    }


def test_a_long_command_is_cut_for_the_list() -> None:
    assert shortened("x" * 200, 10) == "x" * 9 + "…"
    assert shortened("short", 10) == "short"


def test_a_duration_is_short_or_in_hours() -> None:
    begin = timezone.now()
    assert duration(begin, begin + timedelta(seconds=4.21)) == "4.2 s"
    assert duration(begin, begin + timedelta(seconds=3723)) == "1:02:03"
    assert duration(None, begin) == "-"
