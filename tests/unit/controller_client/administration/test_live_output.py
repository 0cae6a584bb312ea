"""A terminal of the daemon's commands shows the text that the server shows for the same bytes."""

import os

import pyte
import pytest

from controller_client.administration.installation import say
from controller_client.administration.live_output import LiveOutput, show_output_of
from controller_client.protocol.terminal_text.view import text_of
from projects.output.visible_values import shown_in

_COLUMNS, _LINES = 40, 12


class Terminal:
    """An operator's terminal, with everything that was written to it."""

    def __init__(self, lines: int = _LINES) -> None:
        self.screen = pyte.Screen(_COLUMNS, lines)
        self._stream = pyte.Stream(self.screen)
        self.live = LiveOutput(lambda: os.terminal_size((_COLUMNS, lines)))
        self.written = ""

    def add(self, data: bytes, stream: str = "stdout") -> None:
        """Show the next bytes of a stream."""
        self.write(self.live.add(stream, data))

    def write(self, text: str) -> None:
        """Write as a terminal gets it: its driver adds carriage returns."""
        self.written += text
        self._stream.feed(text.replace("\n", "\r\n"))

    @property
    def text(self) -> str:
        """All that the screen shows."""
        return "\n".join(row.rstrip() for row in self.screen.display).rstrip()


_TABLE = [
    b"plain \xc3\xa9 text\r\nnext",
    b"10 %\r20 %\r\n",
    b"a long one\rshort\x1b[K\r\n",
    b"typoo\b \bs\r\n",
    b"\x1b[31mred\x1b[0m \x1b(B\x1b7.",
    b"\x1b]52;c;ZXZpbA==\x07a\x1b]0;title\x1b\\b\x1bPq#0\x1b\\c\x1b_G\x1b\\d",
    b"a\xc2\x9b31mb\xc2\x9d52;c;x\xc2\x9cc\x00\x08\x07\x7f\xff.",
    "a\u202eb\u2066c\u200bd\U000e0041e\u2028f.".encode(),
    b"\x1b\x1b[31m\x1b\x07.",
    b"\x1b(0lqk\x1b(B box",
    "\u2764\ufe0f\u200d\U0001f525 \u6f22\u5b57 \u0645\u06cc\u200c\u062e\r\n".encode(),
    b"one\r\ntwo\r\n\x1b[2K\x1b[1A\x1b[2Kagain\r\n",
    b"one\r\ntwo\r\nthree\x1b[2K\x1b[1A\x1b[2K\x1b[1A\x1b[2Kall new",
    b"wide " * 20 + b"\r\x1b[Kgone\r\n",
    b"x" * _COLUMNS + b"\r" + b"y" * _COLUMNS + b"\r\nbelow",
    b"before\r\n" + b"wide " * 12 + b"\r\n\x1b[A\x1b[2Kother\r\nend",
    b"a\tb\r\tc\r\n",
    b"\x1b[2J\x1b[3;4Hdrawn\x1b[5;1Hbelow",
    b"cut \xe2\x82",
    b"\x1b]0;never ended",
]


def _as_shown(text: str) -> str:
    """What a screen has of a text: one that is wide enough wraps as a terminal does."""
    terminal = Terminal()
    terminal.write(text)
    return terminal.text


@pytest.mark.parametrize("data", _TABLE)
def test_a_terminal_ends_with_what_the_server_shows(data: bytes) -> None:
    at_once, in_pieces = Terminal(), Terminal()
    at_once.add(data)
    for at in range(len(data)):
        in_pieces.add(data[at : at + 1])
    for terminal in (at_once, in_pieces):
        terminal.write(terminal.live.finish())
        assert terminal.text == _as_shown(text_of(data))
    # At once, nothing had to be drawn again.
    assert at_once.written == text_of(data)


@pytest.mark.parametrize("data", _TABLE)
def test_no_byte_of_a_program_acts_on_a_terminal(data: bytes) -> None:
    terminal = Terminal()
    for at in range(len(data)):
        terminal.add(data[at : at + 1])
    # Only our own sequences are left.
    ours = terminal.written.replace("\x1b[J", "").replace("\r", "")
    for rows in range(1, _LINES):
        ours = ours.replace(f"\x1b[{rows}A", "")
    assert all(char.isprintable() or char in "\n\t\u200c\u200d" for char in ours), ascii(ours)


@pytest.mark.parametrize("data", _TABLE)
def test_what_is_told_is_what_a_result_shows(
    data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    command = data.decode(errors="replace")
    say(command)
    assert capsys.readouterr().out == f"{shown_in(command)}\n"


def test_lines_out_of_reach_are_shown_once_more_below() -> None:
    terminal = Terminal(lines=4)
    terminal.add(b"1\r\n2\r\n3\r\n4\r\n5\r\n")
    terminal.add(b"\x1b[1A\x1b[2K" * 5 + b"new\r\n")
    assert terminal.text.endswith("new")
    assert terminal.written == "1\n2\n3\n4\n5\n\nnew\n"


def test_two_streams_do_not_draw_over_each_other() -> None:
    terminal = Terminal()
    terminal.add(b"10 %")
    terminal.add(b"a warning\r\n", "stderr")
    terminal.add(b"\r20 %")
    terminal.add(b"another", "stderr")
    terminal.add(b"\rdone\r\n")
    assert terminal.text == "10 %\na warning\n20 %\nanother\ndone"


def test_a_long_output_is_not_kept() -> None:
    terminal = Terminal()
    for number in range(2000):
        terminal.add(b"%05d" % number * 10 + b"\r\n")
    for _ in range(20):
        terminal.add(b"x" * 10_000)
    assert len(terminal.live._views["stdout"].text) <= 16_384 + 65_536 + 10_000
    assert terminal.written.count("\n") == 2000
    assert terminal.written.endswith("x" * 200_000)
    assert "\x1b" not in terminal.written


def test_a_command_s_output_is_shown_as_text(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    command = ["sh", "-c", r"printf 'a\033]0;x\007b\n\033[31mc\303'; exit 3"]
    assert show_output_of(command) == 3
    assert capfdbinary.readouterr().out.decode() == "ab\nc\ufffd"
