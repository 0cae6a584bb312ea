"""Output shows the modes of the terminal, however it is cut into chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.terminal_state.prompt.output_modes import (
    MAX_ANSWERS,
    TAIL_BYTES,
    OutputModes,
)

ANSWERED = [
    (b"\x1b[5n", b"\x1b[0n"),
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[?6n", b"\x1b[?1;1R"),
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[0c", b"\x1b[?62;22c"),
    (b"\x1b[>c", b"\x1b[>1;10;0c"),
    (b"\x1b]10;?\x07", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
    (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
]
UNANSWERED = [
    b"\x1b[3n",
    b"\x1b[21t",
    b"\x1bP$qm\x1b\\",
    b"\x1b]52;c;?\x07",
    b"\x1b[?2026$p",
    b"\x1b]4;1;?\x07",
    b"\x05",
    b"\x1b[1;1R",
]


@pytest.mark.parametrize(("query", "answer"), ANSWERED)
def test_a_query_is_answered_once_wherever_it_is_cut(query: bytes, answer: bytes) -> None:
    for cut in range(len(query) + 1):
        modes = OutputModes()
        assert (
            modes.feed(b"before" + query[:cut])
            + modes.feed(query[cut:] + b"after")
            + modes.feed(b"more")
            == answer
        )


@pytest.mark.parametrize("query", UNANSWERED)
def test_nothing_else_is_ever_answered(query: bytes) -> None:
    assert OutputModes().feed(query) == b""


def test_the_same_query_twice_is_answered_twice() -> None:
    assert OutputModes().feed(b"\x1b[5n\x1b[5n") == b"\x1b[0n\x1b[0n"


def test_a_flood_of_queries_is_not_answered_in_full() -> None:
    assert OutputModes().feed(b"\x1b[5n" * 1000) == b"\x1b[0n" * MAX_ANSWERS


def test_modes_go_on_and_off() -> None:
    modes = OutputModes()
    modes.feed(b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1h\x1b]133;B\x07")
    assert modes.is_alternate_screen
    assert modes.is_cursor_hidden
    assert modes.is_bracketed_paste
    assert modes.is_application_cursor
    assert modes.is_at_shell_mark
    modes.feed(b"\x1b[?1049;25;2004l\x1b[?25h\x1b[?1l\x1b]133;C\x07")
    assert not modes.is_alternate_screen
    assert not modes.is_cursor_hidden
    assert not modes.is_bracketed_paste
    assert not modes.is_application_cursor
    assert not modes.is_at_shell_mark
    assert not modes.is_input_screen


@pytest.mark.parametrize(
    ("output", "takes_input"),
    [
        (b"starting\r\n\x1b[?2004h\x1b[?1049h\x1b[?25l\x1b[1;1H\x1b[J", False),
        (b"\x1b[?1049h\x1b[38;2;255;255;255m\x1b[1;1H    \x1b[2;1H    ", False),
        (b"\x1b[?1049h\x1b[2J\x1b[1;1HTrust?", True),
        (b"\x1b[?1049h\x1b[?1049l\x1b[?2004h", True),
    ],
)
def test_a_full_screen_takes_input_once_text_is_on_it(output: bytes, takes_input: bool) -> None:
    modes = OutputModes()
    modes.feed(output)
    assert modes.is_input_screen is takes_input
    modes.feed(b"text")
    assert modes.is_input_screen


@pytest.mark.parametrize(
    ("output", "is_drawn"),
    [
        ("\x1b[?25l\u2502  \x1b[7m\x1b[8m_\x1b[28m\x1b[27m\r\n", True),
        ("\x1b[?25l\u276f \x1b[7m\u00e9\x1b[27m", True),
        ("\x1b[?25l> \x1b[7m \x1b[0m\r\n", True),
        ("\x1b[?25l\x1b[7mone\x1b[27m two", False),
        ("\x1b[7m_\x1b[27m", False),
    ],
)
def test_one_inverted_cell_is_a_cursor_where_it_is_hidden(output: str, is_drawn: bool) -> None:
    modes = OutputModes()
    modes.feed(output.encode())
    assert modes.has_drawn_cursor is is_drawn


def test_a_reset_of_the_terminal_resets_the_modes() -> None:
    modes = OutputModes()
    modes.feed(b"\x1b[?1049h\x1b[?1h\x1bc")
    assert not modes.is_alternate_screen
    assert not modes.is_application_cursor


PARTS = [
    b"\x1b[?1049h",
    b"\x1b[?1049l",
    b"\x1b[6n",
    b"text",
    b"\x1b",
    b"\x1b]11;?\x07",
    b"\x1b[?25;1h",
]


@given(st.lists(st.sampled_from(PARTS)), st.data())
def test_cuts_change_neither_modes_nor_answers(parts: list[bytes], data: st.DataObject) -> None:
    output = b"".join(parts)
    whole, cut = OutputModes(), OutputModes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=6)))
    pieces = [
        output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)
    ]
    answers = b"".join(cut.feed(piece) for piece in pieces)
    expected = whole.feed(output)
    assert len(answers) >= len(expected)
    assert answers.startswith(expected)
    assert cut.is_alternate_screen == whole.is_alternate_screen
    assert cut.is_application_cursor == whole.is_application_cursor
    assert cut.line == whole.line
    assert cut.is_input_screen == whole.is_input_screen


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (b"one\r\ntwo: ", "two: "),
        (b"done\r\n", ""),
        (b"\x1b[31mred> \x1b[0m", "red> "),
        (b"10%\r20%\r30%", "30%"),
        (b"ab\b \bc", "ac"),
        (b"\r>>> \r\x1b[4C", ">>> "),
        (b"\xe2\xa0\x99\x1b[1G\x1b[0Jname: (root) \x1b[14G", "name: (root) "),
        (b"caf\xc3\xa9? ", "café? "),
        (
            (
                b"Tip\r\n\x1b[?7l\x1b[0mPW:\x1b[3D\x1b[0mPW:\x1b[0m\r\r\n\r\r\n"
                b"\x1b[0m \x08\x1b[2A\x1b[4C\x1b[?7h\x1b[?25h"
            ),
            "PW: ",
        ),
        (
            b"\x1b[J? Pick (Use arrow keys)\r\n \xc2\xbb a\r\n   b\x1b[4D\x1b[2A\x1b[23C",
            "? Pick (Use arrow keys)",
        ),
        (b"1/3\r\n2/3\r\n\x1b[2A\x1b[2Kdone\r\n\x1b[1B", ""),
        (b"a\x1b[999A\x1b[999Cb", "b".rjust(1001)),
        (b"\x1b]0;title\x07$ ", "$ "),
        (b"", ""),
    ],
)
def test_the_text_left_of_the_cursor(output: bytes, line: str) -> None:
    modes = OutputModes()
    modes.feed(output)
    assert modes.line == line


def test_only_the_end_of_long_output_is_kept() -> None:
    modes = OutputModes()
    modes.feed(b"x" * (3 * TAIL_BYTES))
    assert len(modes.line) == TAIL_BYTES


def test_forgotten_text_is_no_prompt() -> None:
    modes = OutputModes()
    modes.feed(b"Name: ")
    modes.forget_text()
    assert modes.line == ""


@pytest.mark.parametrize(
    ("output", "is_drawn"),
    [
        (b"\x1b[9;39H", True),
        (b"\x1b[2d", True),
        (b"\x1b[H\x1b[2J", False),
        (b"\x1b[1;1H", False),
        (b"\x1b[9;39H\x1bc", False),
        (b"\x1b[?5H", False),
    ],
)
def test_placed_text_is_a_drawing_and_clearing_the_screen_is_not(
    output: bytes, is_drawn: bool
) -> None:
    modes = OutputModes()
    modes.feed(output)
    assert modes.is_drawn is is_drawn


def test_a_drawing_outlasts_the_text() -> None:
    modes = OutputModes()
    modes.feed(b"\x1b[9;39")
    modes.feed(b"Hmenu")
    modes.forget_text()
    assert modes.is_drawn


@pytest.mark.parametrize("final", [b"H", b"f", b"d", b"A", b"J", b"h", b"n", b"u"])
def test_a_number_of_any_length_ends_nothing(final: bytes) -> None:
    modes = OutputModes()
    assert modes.feed(b"\x1b[" + b"1" * 5000 + final + b"$ ") == b""
    assert modes.line.endswith("$ ")


def test_places_on_any_number_of_rows_take_no_more_room() -> None:
    modes = OutputModes()
    modes.feed(b"".join(b"\x1b[%dHx" % row for row in range(1, 20_000)))
    assert modes.is_drawn
    assert modes.is_drawn_on_many_rows
    modes.feed(b"\x1b[2J\x1b[H")
    assert not modes.is_drawn_on_many_rows
