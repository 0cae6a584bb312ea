"""Values that others chose, made visible."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from projects.admin.display import duration, shortened, visible


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


def test_a_transcript_keeps_its_lines() -> None:
    assert visible("a\tb\n\u202ec", keep="\n\t") == "a\tb\n\\u202ec"


@given(st.text())
def test_nothing_invisible_ever_remains(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert not set(visible(text)) & {
        chr(code) for code in (*range(32), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    }


def test_a_long_command_is_cut_for_the_list() -> None:
    assert shortened("x" * 200, 10) == "x" * 9 + "…"
    assert shortened("short", 10) == "short"


def test_a_duration_is_short_or_in_hours() -> None:
    begin = timezone.now()
    assert duration(begin, begin + timedelta(seconds=4.21)) == "4.2 s"
    assert duration(begin, begin + timedelta(seconds=3723)) == "1:02:03"
    assert duration(None, begin) == "-"
