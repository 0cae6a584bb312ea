"""A line editor that showed a line is known at the same prompt, and nowhere else."""

import pytest

from controller_client.terminal_state.prompt.line_echo import LineEcho


def _typed(shown: bytes, *, typed: bytes = b"select 1;\n") -> LineEcho:
    echo = LineEcho()
    echo.on_claim(7, "tokens: ")
    echo.before_input(typed)
    for byte in shown:
        echo.on_output(bytes([byte]))
    return echo


@pytest.mark.parametrize(
    "shown",
    [b"select 1;\r\n1\r\n", b"\x1b[1Gtokens: \x1b[32mselect\x1b[0m 1;\r\n", b"tokens: select 1;"],
)
def test_a_line_that_was_shown_proves_an_editor(shown: bytes) -> None:
    echo = _typed(shown)
    assert echo.is_echoed(7, "tokens:")
    assert not echo.is_echoed(8, "tokens: ")
    assert not echo.is_echoed(7, "Password: ")


@pytest.mark.parametrize("shown", [b"\r\n", b"*********\r\n", b"\r\nyou said select 1;\r\n", b""])
def test_a_line_that_was_not_shown_proves_no_editor(shown: bytes) -> None:
    assert not _typed(shown).is_echoed(7, "tokens: ")


def test_an_editor_that_hides_the_next_line_is_forgotten() -> None:
    echo = _typed(b"select 1;\r\n")
    echo.on_claim(7, "tokens: ")
    echo.before_input(b"hunter2\n")
    echo.on_output(b"\r\n")
    assert not echo.is_echoed(7, "tokens: ")


@pytest.mark.parametrize("typed", [b"\n", b"x", b"\x1b[A\n", b"a\nb\n", b""])
def test_only_a_line_of_text_counts_as_input(typed: bytes) -> None:
    assert not _typed(b"x a b\r\n", typed=typed).is_echoed(7, "tokens: ")
