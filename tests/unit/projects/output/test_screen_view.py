"""The rendered screen of full-screen programs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projects.output.screen_view import render_screen


def _lines(data: bytes, rows: int = 4, cols: int = 20) -> list[str]:
    return [line for line in render_screen(data, rows=rows, cols=cols).lines if line]


def test_text_lands_where_the_cursor_is() -> None:
    screen = render_screen(b"\x1b[2J\x1b[1;1HTop\x1b[3;5Hmid", rows=4, cols=20)
    assert screen.lines == ("Top", "", "    mid", "")
    assert (screen.cursor_row, screen.cursor_column, screen.is_alternate) == (2, 7, False)


def test_leaving_the_alternate_screen_restores_the_lines_it_hid() -> None:
    opened = b"$ vim\r\n\x1b[?1049h\x1b[2J\x1b[HEDITOR"
    assert _lines(opened) == ["EDITOR"]
    assert render_screen(opened, rows=4, cols=20).is_alternate
    assert _lines(opened + b"\x1b[?1049l$ ls") == ["$ vim", "$ ls"]


def test_long_output_shows_its_last_screenful() -> None:
    data = b"".join(b"line %d\r\n" % number for number in range(5000))
    assert _lines(data, rows=4) == ["line 4997", "line 4998", "line 4999"]


@pytest.mark.parametrize(
    "noise",
    [
        b"\x1b[>4;1m",
        b"\x1b]0;title\x07",
        b"\x1b]52;c;QUJD\x1b\\",
        b"\x1bP+q544e\x1b\\",
        b"\x1b[?1;2$p",
        b"\x1b[2 q",
        b"\x1b[?25l",
        b"\x1b[=1c",
    ],
)
def test_sequences_the_emulator_does_not_know_leave_no_trace(noise: bytes) -> None:
    assert _lines(b"ab" + noise + b"cd") == ["abcd"]


@given(st.binary(max_size=300), st.integers(1, 6), st.integers(1, 12))
def test_any_bytes_make_a_screen_of_the_asked_size(data: bytes, rows: int, cols: int) -> None:
    screen = render_screen(b"\x1b[" + data, rows=rows, cols=cols)
    assert len(screen.lines) == rows
    assert 0 <= screen.cursor_row < rows
    assert 0 <= screen.cursor_column < cols


escape_soup = st.lists(
    st.sampled_from(
        [
            b"\x1b[",
            b"\x1b",
            b"?",
            b"1",
            b"2",
            b";",
            b"999",
            b"H",
            b"J",
            b"K",
            b"m",
            b"r",
            b"L",
            b"M",
            b"P",
            b"@",
            b"h",
            b"l",
            b"x",
            b"\n",
        ]
    ),
    max_size=40,
).map(b"".join)


@given(escape_soup)
def test_no_mixture_of_sequences_breaks_it(data: bytes) -> None:
    assert len(render_screen(data, rows=3, cols=10).lines) == 3


@pytest.mark.parametrize(
    ("printed", "row"),
    [
        ("a\u200bbc def", "a\\u{200b}bc def"),
        ("\ufeffabc def", "abc def"),
        ("a\u00adb", "a\\u{00ad}b"),
        ("\U0001f469\u200d\U0001f4bb dev", "\U0001f469\u200d\U0001f4bb dev"),
        ("\u2764\ufe0f dev", "\u2764\ufe0f dev"),
        (
            "\u0e17\u0e35\u0e48\u0e19\u0e31\u0e48\u0e19 ok",
            "\u0e17\u0e35\u0e48\u0e19\u0e31\u0e48\u0e19 ok",
        ),
        ("\u0939\u093f\u0928\u094d\u0926\u0940 ok", "\u0939\u093f\u0928\u094d\u0926\u0940 ok"),
        ("e\u0301tude", "\u00e9tude"),
        ("a\u0085b\u2028c", "ab\\u{2028}c"),
    ],
)
def test_text_goes_on_behind_a_character_without_a_width(printed: str, row: str) -> None:
    assert _lines(printed.encode(), rows=1, cols=40) == [row]


@pytest.mark.parametrize(("save", "restore"), [("\x1b7", "\x1b8"), ("\x1b[s", "\x1b[u")])
def test_a_saved_place_is_gone_back_to(save: str, restore: str) -> None:
    assert _lines(f"pass{save}\x1b[9G#{restore}word".encode(), rows=1) == ["password#"]


def test_a_cell_takes_few_characters_without_a_width() -> None:
    (line,) = _lines(b"a" + "\u20e3".encode() * 10_000 + b"b")
    assert line.startswith("a")
    assert line.endswith("b")
    assert len(line) < 40


def test_boxes_are_drawn_as_boxes_and_stray_shifts_change_nothing() -> None:
    assert _lines(b"\x1b(0lqk\x1b(B\r\n\x0elqk \xe6\xbc\xa2\x0f") == ["┌─┐", "lqk 漢"]


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[²H", "\x1b[1;①H", "\x1b[" + "1" * 5000 + "H", "\x1b[1\n²H", "\x1b[?" + "9" * 5000 + "h"],
)
@pytest.mark.parametrize("count", [1, 3000])
def test_no_sequence_keeps_what_follows_from_being_drawn(hostile: str, count: int) -> None:
    before = (hostile * (count if len(hostile) < 100 else 20)).encode()
    drawn = render_screen(b"first" + before + b"\x1b[2J\x1b[3;4Hlast", rows=5, cols=40)
    assert drawn.lines[2] == "   last"
    assert (drawn.cursor_row, drawn.cursor_column) == (2, 7)


@pytest.mark.parametrize(
    ("printed", "row"),
    [
        ("処理中です\r50%", "50% 中です"),
        ("あ\ra", "a"),
        ("ダウンロード\r\x1b[1X", "  ウンロード"),
        ("ab処\x1b[1;4Hx", "ab x"),
        ("e\u0301x", "\u00e9x"),
    ],
)
def test_half_of_a_wide_character_is_a_blank(printed: str, row: str) -> None:
    assert _lines(printed.encode()) == [row]


@pytest.mark.parametrize("noise", [b"\x1b#8", b"\x1b[?5h", b"\x1b[?25;5l"])
def test_what_would_fill_all_cells_is_passed_over(noise: bytes) -> None:
    assert _lines(b"ab" + noise * 20_000 + b"c", rows=500, cols=1000) == ["abc"]
