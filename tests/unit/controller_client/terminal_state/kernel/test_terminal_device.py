"""A terminal without a program on it."""

import os
import termios
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_client.terminal_state.kernel.terminal_device import (
    Flags,
    has_unread_input,
    identity_of,
    is_read_pending,
    is_this_terminal,
    open_inner,
    open_slave,
    read_flags,
    wake_sleepers,
)


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Return master and slave of a new terminal."""
    master, slave = os.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def test_flags_are_those_of_the_slave_through_either_end(terminal: tuple[int, int]) -> None:
    for end in terminal:
        assert read_flags(end) == Flags(is_echoing=True, is_canonical=True, is_polling=False)
    tty.setraw(terminal[1])
    raw = Flags(is_echoing=False, is_canonical=False, is_polling=False, takes_every_key=True)
    assert read_flags(terminal[0]) == raw


def test_a_reader_of_one_key_leaves_the_key_of_an_interrupt(terminal: tuple[int, int]) -> None:
    tty.setcbreak(terminal[1])
    assert not read_flags(terminal[0]).takes_every_key


def test_a_line_editor_frees_the_key_that_quotes_the_next(terminal: tuple[int, int]) -> None:
    tty.setcbreak(terminal[1])
    assert not read_flags(terminal[0]).edits_lines
    attributes = termios.tcgetattr(terminal[1])
    attributes[6][termios.VLNEXT] = 0
    termios.tcsetattr(terminal[1], termios.TCSANOW, attributes)
    assert read_flags(terminal[0]).edits_lines
    attributes[3] |= termios.ICANON
    termios.tcsetattr(terminal[1], termios.TCSANOW, attributes)
    assert not read_flags(terminal[0]).edits_lines


def test_echo_off_in_line_mode_is_a_secret(terminal: tuple[int, int]) -> None:
    attributes = termios.tcgetattr(terminal[1])
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal[1], termios.TCSANOW, attributes)
    assert read_flags(terminal[0]).is_secret


def test_a_read_that_returns_nothing_at_once_is_polling(terminal: tuple[int, int]) -> None:
    tty.setraw(terminal[1])
    attributes = termios.tcgetattr(terminal[1])
    attributes[6][termios.VMIN] = 0
    termios.tcsetattr(terminal[1], termios.TCSANOW, attributes)
    assert read_flags(terminal[0]).is_polling


def test_flags_of_no_terminal_are_an_os_error() -> None:
    reader, writer = os.pipe()
    with pytest.raises(OSError, match="Inappropriate ioctl"):
        read_flags(reader)
    os.close(reader)
    os.close(writer)


def test_the_slave_is_the_same_terminal_opened_anew(terminal: tuple[int, int]) -> None:
    opened = open_slave(terminal[0])
    assert opened != terminal[1]
    assert identity_of(os.fstat(opened)) == identity_of(os.fstat(terminal[1]))
    os.close(opened)


def test_input_is_unread_until_it_is_read(terminal: tuple[int, int]) -> None:
    master, slave = terminal
    assert not has_unread_input(slave)
    os.write(master, b"line\n")
    assert has_unread_input(slave)
    os.read(slave, 100)
    assert not has_unread_input(slave)


def test_half_a_line_is_not_yet_input(terminal: tuple[int, int]) -> None:
    os.write(terminal[0], b"half")
    assert not has_unread_input(terminal[1])


def test_no_read_is_pending_where_nobody_reads(terminal: tuple[int, int]) -> None:
    opened = open_slave(terminal[0])
    assert not is_read_pending(opened)
    os.close(opened)


def test_waking_sleepers_changes_nothing(terminal: tuple[int, int]) -> None:
    before = termios.tcgetattr(terminal[1])
    wake_sleepers(terminal[1])
    assert termios.tcgetattr(terminal[1]) == before


def test_a_terminal_has_an_identity_of_its_own(terminal: tuple[int, int]) -> None:
    identity = identity_of(os.fstat(terminal[1]))
    assert is_this_terminal(os.fstat(terminal[1]), identity, is_own_session=False)
    assert not is_this_terminal(os.fstat(terminal[0]), identity, is_own_session=True)
    with Path("/dev/null").open() as other:
        assert not is_this_terminal(os.fstat(other.fileno()), identity, is_own_session=True)


def test_an_inner_terminal_is_opened_through_a_process_that_has_it(
    terminal: tuple[int, int],
) -> None:
    opened = open_inner([os.getpid()], os.fstat(terminal[1]).st_rdev)
    assert opened is not None
    os.close(opened)


def test_a_terminal_that_nobody_has_open_stays_closed() -> None:
    master, slave = os.openpty()
    device = os.fstat(slave).st_rdev
    os.close(slave)
    assert open_inner([os.getpid()], device) is None
    os.close(master)


def test_a_terminal_that_is_not_there_is_out_of_reach() -> None:
    assert open_inner([2**22 + 1], os.makedev(136, 99_999)) is None
