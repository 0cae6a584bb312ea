"""The text left of the cursor is what a person sees there, however a program came to draw it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.terminal_state.prompt.drawn_text import DrawnText, left_of_cursor, question

PARTS = [
    b"Name: ",
    b" ",
    b"\n",
    b"\x1b[31m",
    b"\x1b[?2004h",
    b"\x1b[4l",
    b"\x1b[2C",
    b"\x08",
    b"\t",
]


@given(st.lists(st.sampled_from(PARTS)))
def test_text_colours_and_modes_read_as_they_are_drawn(parts: list[bytes]) -> None:
    output = b"".join(parts)
    drawn = DrawnText()
    drawn.draw(output)
    assert left_of_cursor(output) == drawn.left_of_cursor


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (b"vm# \x1b[K\x1b[90Cright\x1b[95D\x1b[?2004h", "vm# "),  # zsh with RPROMPT
        (b"\r\n[3]> \r\x1b[3D\x1b[5C", "[3]> "),  # clisp
        (b"[3]> abc\x08\x08\x08", "[3]> "),
        (b"[3]> abc\x1b[3D", "[3]> "),
        (b"[3]> \r3\r[3]> ", "[3]> "),
        (b"downloading 99%\rdone? ", "done? "),
        (b"downloading 99%\rab\x1b[3C", "abwnl"),
        (b"ab\x1b[1;5H", ""),
        (b"\x1b[4;1HName: \x1b[9;1Hstatus\x1b[4;7H", "Name: "),
        (b"\x1b[4;1HName: \x1b7\x1b[9;1Hstatus\x1b8", "Name: "),
        (b"\x1b[4;1HName: \x1b[s\x1b[9;1Hstatus\x1b[u", "Name: "),
        (b"? Name \r\nhelp\r\n\x1b[2A\x1b[8G", "? Name "),
        (b"? Name \r\nhelp\x1b[F\x1b[7C", "? Name "),
        (b"? Name \r\nhelp\r\n\x1bM\x1bM\x1b[7C", "? Name "),
        (b"one\ntwo", "   two"),
        (b"one\n\rtwo", "two"),
        (b"a\x1bEb", "b"),
        (b"a\tb", "a       b"),
        (b"abc\r\tx", "abc     x"),
        ("日本? \x1b[2D".encode(), "日本"),
        ("名前: \x1b[7G".encode(), "名前: "),
        ("e\u0301te\u0301: \x1b[6G".encode(), "e\u0301te\u0301: "),
        ("e\x1b[1m\u0301: ".encode(), "e\u0301: "),
        ("\u200fكلمة: \u202aab\u202c ".encode(), "كلمة: ab "),
        (b"Name: x\x1b[1D\x1b[P", "Name: "),
        (b"ab\x1b[2D\x1b[2@xy", "xy"),
        (b"abc\x1b[3D\x1b[2X\x1b[2C", ""),
        (b"abcd\x1b[1K", ""),
        (b"abcd\x1b[2D\x1b[1K\x1b[1C", ""),
        (b"a\r\nb\x1b[1J", ""),
        (b"a\r\nb\x1b[A\x1b[J\x1b[1B", ""),
        (b"a\r\nb\x1b[2J\x1b[Hc", "c"),
        (b"$ \x1b[?1049hfull screen\r\n:\x1b[?1049l", "$ "),
        (b"full screen\r\n:\x1b[?1049l# ", "# "),
        (b"\x1b(0lqk\x1b(B x", "\u2502\u2502\u2502 x"),
        (b"\x1b]0;title\x07\x1bP+q\x1b\\> ", "> "),
        (b"\x1b[5C", ""),
        (b"x\x1b[", "x"),
    ],
)
def test_the_text_left_of_the_cursor_is_what_stands_there(output: bytes, line: str) -> None:
    assert left_of_cursor(output) == line


@pytest.mark.parametrize(
    ("output", "asked"),
    [
        (
            b"\x1b[3;5HEnter the\x1b[4;5HPIN:\x1b[6;5H|      |\x1b[6;6H",
            "Enter the PIN:",
        ),
        (b"\x1b[3;5H\x1b(0x\x1b(BPIN\x1b(0x\x1b(B\x1b[5;5H<OK>\x1b[4;5H", "PIN"),
        (b"Password: [    ]\x1b[5D", "Password: [    ]"),
        ("│\r\n◆  API key\r\n│  _\r\n└\r\n".encode(), "◆  API key"),
        ("◆  Token\r\n│  ● One\r\n│  ○ Two\r\n└\r\n".encode(), ""),
        ("? Pick\r\n\u276f Password\r\n".encode(), ""),
        (b"", ""),
    ],
)
def test_the_question_of_a_form_stands_above_its_entry(output: bytes, asked: str) -> None:
    assert question(output) == asked
