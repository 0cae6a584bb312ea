"""Whether what was typed leaves a part of a line, as a real terminal takes it."""

import os
import select
import termios
from collections.abc import Iterator

import pytest

from controller_client.holder.input.open_line import LineKeys, OpenLine

_LFLAG, _CC = 3, 6


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = os.openpty()
    yield master, slave
    os.close(slave)
    os.close(master)


def _read(slave: int) -> list[bytes]:
    """All that a program would read now, one read after the other."""
    reads = []
    while select.select([slave], [], [], 0)[0]:
        reads.append(os.read(slave, 4096))
    return reads


@pytest.mark.parametrize(
    ("typed", "is_left"),
    [
        ([b"half"], True),
        ([b"whole\n"], False),
        ([b"whole\r"], False),
        ([b"whole\nhalf"], True),
        ([b"half", b" and half\n"], False),
        ([b"half\x15"], False),
        ([b"half\x04"], True),
        ([b"half\x04\x15"], True),
        ([b"half\x04", b"rest\n"], False),
        ([b"half\x04\x04"], False),
        ([b"\x04"], False),
        ([b"half\x16\x15"], True),
        ([b"half\x16", b"\x15"], True),
        ([b"half\x16\n\n"], False),
        ([b"\x16a\x15"], False),
        ([b"half", b""], True),
    ],
)
def test_a_secret_typed_behind_it_would_be_read_alone_or_not(
    terminal: tuple[int, int], typed: list[bytes], *, is_left: bool
) -> None:
    master, slave = terminal
    line = OpenLine()
    for data in typed:
        os.write(master, data)
        line.typed(data, LineKeys.read(master))
    assert line.holds_part is is_left
    os.write(master, b"secret\n")
    # A program reads on until a line is ended, and the empty read is the end of the file.
    read = b"".join(part or b"\n" for part in _read(slave))
    assert (read.split(b"\n")[-2] != b"secret") is is_left


def test_a_terminal_that_edits_no_lines_keeps_none(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    line = OpenLine()
    line.typed(b"half", LineKeys.read(master))
    attributes = termios.tcgetattr(slave)
    attributes[_LFLAG] &= ~termios.ICANON
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    line.typed(b"y", LineKeys.read(master))
    assert not line.holds_part


def test_a_character_that_hands_over_a_line_leaves_a_part(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    attributes = termios.tcgetattr(slave)
    attributes[_CC][termios.VEOL] = b";"
    termios.tcsetattr(slave, termios.TCSANOW, attributes)
    line = OpenLine()
    line.typed(b";", LineKeys.read(master))
    assert line.holds_part
    line.typed(b"\n", LineKeys.read(master))
    assert not line.holds_part


def test_keys_that_mean_nothing_leave_a_part() -> None:
    line = OpenLine()
    nothing = LineKeys(ends=b"", end_of_file=b"", hands_over=b"", clears=b"", quotes=b"")
    line.typed(b"\n", nothing)
    assert line.holds_part
    line.clear()
    assert not line.holds_part
