"""The text of a prompt as results show it."""

import pytest

from projects.sessions.answers.prompt import shown_text

_ROW = "    1 root      10 -10   40264  13328   0:01.34 init" + " " * 40


@pytest.mark.parametrize(
    ("kind", "asked", "shown"),
    [
        ("key", _ROW, "1 root 10 -10 40264 13328 0:01.34 init"),
        ("screen", _ROW, "1 root 10 -10 40264 13328 0:01.34 init"),
        ("screen", "  [ OK ]   <Cancel>", "[ OK ] <Cancel>"),
        ("key", "Press any key to continue . . . ", "Press any key to continue . . . "),
        ("line", "Name:  ", "Name:  "),
    ],
)
def test_the_row_of_a_drawn_screen_loses_the_blanks_that_fill_it(
    kind: str, asked: str, shown: str
) -> None:
    assert shown_text(kind, asked) == shown
