"""The text view of terminal bytes."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.terminal_text.view import (
    MAX_COLUMNS,
    MAX_SEQUENCE_CHARS,
    TextView,
    complete_length,
    text_of,
)

_TYPED = b"echo 'name    value'   "
PIECES = [
    b"plain",
    b"\r\n",
    b"\n",
    b"\r",
    b"\b",
    b"\t",
    b"\x00",
    b"\x1b",
    b"\x1b[",
    b"\x1b[0m",
    b"\x1b[31;1m",
    b"\x1b[K",
    b"\x1b[2K",
    b"\x1b[3D",
    b"\x1b[5C",
    b"\x1b[2P",
    b"\x1b[4@",
    b"\x1b[2;3H",
    b"\x1b[A",
    b"\x1b7",
    b"\x1b8",
    b"\x1b[s",
    b"\x1b[u",
    b"\x1b[3A",
    b"\x1b[?2004h",
    b"\x1b]0;title\x07",
    b"\x1b]8;;http://x\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1b(B",
    b"\xc2\x9b31m",
    b"\xc2\x9d0;t\xc2\x9c",
    "naïve ✓ 🚀".encode(),
    b"\xff\xfe",
    b"\xe2\x9c",
    b"\x1b]52;c;",
]
terminal_bytes = st.one_of(
    st.binary(max_size=60), st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join)
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"hello\r\nworld\r\n", "hello\nworld\n"),
        (b"10%\r 50%\r100%\r\n", "100%\n"),
        (b"Reading... 0%\rReading... Done\r\n", "Reading... Done\n"),
        (b"long line\rshort\x1b[K\n", "short\n"),
        (b"abc\b\bX", "aXc"),
        (b"pass\b \b\b \b", "pa  "),
        (b"\x1b[31mred\x1b[0m plain", "red plain"),
        (b"\x1b]0;window title\x07$ ", "$ "),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bP+q544e\x1b\\after", "after"),
        (b"\xc2\x9b31mc1\xc2\x9b0m", "c1"),
        (b"nul\x00free", "nulfree"),
        (b"bell\x07 vt\x0b ff\x0c del\x7f", "bell vt ff del"),
        ("größe 🚀\n".encode(), "größe 🚀\n"),
        (b"\xff", "�"),
        (b"ab\x1b[3Gcd", "abcd"),
        (b"abcdef\x1b[4D\x1b[2Pz", "abzf"),
        (b"menu\x1b[5;10Hitem", "menu\nitem"),
        (b"\x1b]0;unterminated\nshown", "\nshown"),
        (b"cut \x1b[12", "cut "),
        (b"\x1b[H\x1b[2Jtop", "top"),
        (b"a\x1b[?25lb", "ab"),
        (b"pass\x1b7\x1b[9G#\x1b8word", "password#"),
        (b"pass\x1b[s\x1b[1Gp\x1b[uword", "password"),
        (b"a\n\x1b7\x1b[24;1H[10%]\x1b8b\n", "a\n[10%]\nb\n"),
        (b"ab\x1b7\ncd\x1b8ef", "ab\ncd\nef"),
        (b"ab\x1b8c", "abc"),
        (b"one\r\nName:\r\r\n\r\r\n\r\r\n \b\x1b[3A\x1b[6Cada", "one\nName: ada"),
        (b"? Pick\r\n > a\r\n\r\n\r\n\x1b[4A\x1b[6C", "? Pick\n > a\n"),
        (b"10%\n\x1b[1A\x1b[2K20%\n\x1b[1A\x1b[2K30%\n", "30%\n"),
        (b"\n\n\x1b[9Aa", "a"),
        (b"a\x1b[Ab", "a\nb"),
        ("a\u2028b\nc\n\x1b[2Ad".encode(), "a\\u{2028}b\nc\nd"),
        ("a\u2028b\n\x1b[A\x1b[4Cd".encode(), "a\\u{2028}b d"),
        (b"a\x1b[>4;1mb", "ab"),
        (b"\x1b]0;title\x1b[0mtext", "text"),
        (b"\x1b\x1b[0m[31mx", "[31mx"),
        (b"\x1b[1mbold\x1b[0m\r\x1b[K\n", "\n"),
    ],
)
def test_bytes_become_the_text_a_person_would_read(data: bytes, text: str) -> None:
    assert text_of(data) == text


@given(terminal_bytes, st.lists(st.integers(0, 200), max_size=8))
def test_any_split_gives_the_same_text(data: bytes, cuts: list[int]) -> None:
    view = TextView()
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    for start, end in pairwise(edges):
        view.feed(data[start:end])
    view.feed(b"", final=True)
    assert view.text == text_of(data)


@given(
    st.lists(
        st.sampled_from(
            [
                b"plain\r\n" * 150,
                b"one line\r\n",
                b"50 %\r100 %\r\n",
                b"\x1b[31mred\x1b[0m\r\n",
                b"old\x1b[2K\rnew\r\n",
                b"\x1b(0lqk",
                b"\x1b(B",
                b"\x1b[2A",
                b"\x1b]0;title",
                b"half a line",
            ]
        ),
        max_size=9,
    )
)
def test_long_output_is_the_text_of_its_lines(parts: list[bytes]) -> None:
    data, view = b"".join(parts), TextView()
    for line in data.splitlines(keepends=True):
        view.feed(line)
    view.feed(b"", final=True)
    assert text_of(data) == view.text


@given(terminal_bytes)
def test_no_control_character_survives_but_newline_and_tab(data: bytes) -> None:
    assert not [
        c for c in text_of(data) if (ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) <= 0x9F
    ]


@given(terminal_bytes, terminal_bytes)
def test_a_page_never_ends_inside_a_character_or_a_sequence(first: bytes, second: bytes) -> None:
    data = first + second
    size = complete_length(first)
    assert 0 <= size <= len(first)
    view = TextView()
    view.feed(data[:size], final=True)
    view.feed(data[size:], final=True)
    assert view.text == text_of(data)


@given(st.text(max_size=40).map(str.encode), st.integers(1, 3))
def test_a_cut_character_is_left_for_the_next_page(data: bytes, cut: int) -> None:
    page = data[: max(0, len(data) - cut)]
    page[: complete_length(page)].decode()


def test_an_unterminated_string_sequence_does_not_hide_the_rest() -> None:
    text = text_of(b"\x1b]52;c;" + b"A" * (MAX_SEQUENCE_CHARS + 100) + b" visible")
    assert text.endswith("A visible")
    assert len(text) < 200


def test_a_few_bytes_cannot_become_a_huge_line() -> None:
    assert len(text_of(b"\x1b[999999C" * 50 + b"x")) <= MAX_COLUMNS + 1


def test_a_long_line_written_in_small_pieces_stays_linear() -> None:
    data = b"\x1b[0mx" * 60_000
    assert text_of(data) == "x" * 60_000


def test_lines_that_are_redrawn_one_by_one_stay_linear() -> None:
    data = b"line\n" * 60_000 + b"\x1b[A\x1b[Kover\n" * 60_000 + b"\n" * 60_000 + b"\x1b[A" * 60_000
    assert text_of(data) == "line\n" * 59_999 + "over\n"
    wide = b"x" * 500_000 + b"\n"
    assert text_of(wide + b"\x1b[A" * 100_000) == wide.decode()


def test_boxes_are_drawn_as_boxes() -> None:
    box = b"\x1b(0lqk\x1b(B\r\n\x1b(0x\x1b[1m\x1b(Bq\x1b(0x\x1b(B\r\nq"
    assert text_of(box) == "┌─┐\n│q│\nq"


def test_a_table_that_is_redrawn_has_no_blanks_at_its_lines_ends() -> None:
    drawn = b"PID USER      \x1b(B\x1b[m\x1b[K\r\n  1 root      \x1b[K\r\nplain  \r\nName: \x1b[K"
    assert text_of(drawn) == "PID USER\n  1 root\nplain  \nName: "


@pytest.mark.parametrize("cut", range(len(_TYPED)))
def test_a_cut_within_a_line_takes_nothing_from_it(cut: int) -> None:
    begun = b"$ \x1b[K"
    whole = text_of(begun + _TYPED)
    assert text_of(begun + _TYPED[:cut]) + text_of(_TYPED[cut:]) == whole
    assert whole == f"$ {_TYPED.decode()}"


def test_a_long_line_that_is_erased_again_and_again_takes_a_moment() -> None:
    assert text_of(b"x" * 200_000 + b"\x1b[1K" * 60_000).startswith("xxx")


def test_a_place_far_to_the_right_does_not_make_long_lines_of_blanks() -> None:
    far = b"x" * 50_000 + b"\x1b7" + b"\x1b[2K\x1b8y" * 10_000
    assert len(text_of(far)) <= MAX_COLUMNS + 1
