"""Output that an operator's terminal shows: whatever a program writes, it stays text."""

import pytest

from controller_client.administration.terminal_text import TerminalText


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain \xc3\xa9\ttext\r\n", "plain é\ttext\n"),
        (b"10 %\r20 %\r\n", "10 %\n20 %\n"),
        (b"\x1b[31mred\x1b[0m \x1b[2J\x1b(B\x1b7\x1bc.", "red ."),
        (b"\x1b]52;c;ZXZpbA==\x07a\x1b]0;title\x1b\\b\x1bPq#0\x1b\\c\x1b_G\x1b\\d", "abcd"),
        (b"a\xc2\x9b31mb\xc2\x9d52;c;x\xc2\x9c\x00\x08\x07\x7f\xff.", "a�31mb�52;c;x������."),
        ("a\u202eb\u2066c\u200bd\U000e0041e\u2028f.".encode(), "a�b�c�d�e�f."),
        (b"\x1b\x1b[31m\x1b\x07.", "���."),
    ],
)
def test_no_output_does_anything_to_a_terminal(data: bytes, shown: str) -> None:
    assert TerminalText().add(data) == shown
    pieces = TerminalText()
    assert "".join(pieces.add(data[at : at + 1]) for at in range(len(data))) == shown


def test_a_sequence_without_an_end_is_not_kept_without_limit() -> None:
    text = TerminalText()
    assert text.add(b"\x1b]52;c;" + b"a" * 4000) == ""
    assert text.add(b"a" * 4000).startswith("�]52;c;aaa")
