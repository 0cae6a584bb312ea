"""What an input becomes, for each way a terminal can be set."""

import os
import termios
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.holder.input.keys import (
    NEW_MODES,
    RAW_MODES,
    InputRefused,
    TerminalModes,
    encode_input,
    is_interrupt,
    measure_lines,
    read_modes,
)
from controller_client.protocol.messages import SendInput

CANONICAL = TerminalModes(
    is_canonical=True,
    has_signals=True,
    end_of_file=b"\x04",
    interrupt=b"\x03",
    breaks=b"\n\r\x04\x15\x03\x1c\x1a",
)


def _input(**fields: Any) -> SendInput:
    return SendInput(seq=1, session_id="s", input_seq=1, **fields)


def _encode(
    command: SendInput,
    modes: TerminalModes = CANONICAL,
    *,
    open_line: int = 0,
    application: bool = False,
) -> bytes:
    return encode_input(command, modes, open_line_bytes=open_line, application_cursor=application)


@pytest.fixture
def terminal() -> Iterator[int]:
    master, slave = os.openpty()
    yield master
    os.close(master)
    os.close(slave)


def test_modes_are_those_of_the_terminal_behind_the_master(terminal: int) -> None:
    modes = read_modes(terminal)
    assert (modes.is_canonical, modes.has_signals, modes.end_of_file, modes.interrupt) == (
        True,
        True,
        b"\x04",
        b"\x03",
    )
    assert set(modes.breaks) >= set(b"\n\r\x04\x03")
    attributes = termios.tcgetattr(terminal)
    attributes[3] &= ~(termios.ICANON | termios.ISIG)
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    assert (read_modes(terminal).is_canonical, read_modes(terminal).has_signals) == (False, False)


def test_a_new_terminal_has_the_modes_of_new_terminals(terminal: int) -> None:
    modes = read_modes(terminal)
    assert modes._replace(breaks=b"") == NEW_MODES._replace(breaks=b"")
    assert set(modes.breaks) == set(NEW_MODES.breaks)


def test_what_is_no_terminal_takes_everything_as_it_is() -> None:
    reader, writer = os.pipe()
    assert read_modes(reader) == RAW_MODES
    os.close(reader)
    os.close(writer)


def test_data_secret_keys_and_end_are_typed_in_this_order() -> None:
    command = _input(data=b"a", secret=b"b", keys=["enter"], eof=True)
    assert _encode(command) == b"ab\r\x04"


def test_the_end_of_an_unfinished_line_takes_two_characters() -> None:
    assert _encode(_input(eof=True)) == b"\x04"
    assert _encode(_input(data=b"abc\n", eof=True)) == b"abc\n\x04"
    assert _encode(_input(data=b"abc", eof=True)) == b"abc\x04\x04"
    assert _encode(_input(eof=True), open_line=3) == b"\x04\x04"
    assert _encode(_input(data=b"abc", eof=True), RAW_MODES) == b"abc\x04"
    assert _encode(_input(eof=True), CANONICAL._replace(end_of_file=b"\x1d")) == b"\x1d"


def test_arrows_follow_the_cursor_mode() -> None:
    assert _encode(_input(keys=["up", "home"])) == b"\x1b[A\x1b[H"
    assert _encode(_input(keys=["up", "home"]), application=True) == b"\x1bOA\x1bOH"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (_input(keys=["no-such-key"]), "UNKNOWN_KEY"),
        (_input(keys=["up"] * 65), "INPUT_TOO_LARGE"),
        (_input(data=b"x\n" * 40000), "INPUT_TOO_LARGE"),
        (_input(data=b"x" * 4096), "INPUT_LINE_TOO_LONG"),
        (_input(data=b"ok\n" + b"x" * 4096 + b"\nok\n"), "INPUT_LINE_TOO_LONG"),
    ],
)
def test_what_cannot_be_typed_is_refused_by_code(command: SendInput, code: str) -> None:
    with pytest.raises(InputRefused) as refused:
        _encode(command)
    assert refused.value.failure.code == code


def test_a_refusal_quotes_nothing_of_the_input() -> None:
    with pytest.raises(InputRefused) as refused:
        _encode(_input(data=b"tOpSeCrEt" * 1000))
    assert "tOpSeCrEt" not in str(refused.value)


def test_the_longest_line_that_fits_fits() -> None:
    assert len(_encode(_input(data=b"x" * 4095 + b"\n"))) == 4096
    assert len(_encode(_input(data=b"x" * 95 + b"\n"), open_line=4000)) == 96
    assert len(_encode(_input(data=b"x" * 60000), RAW_MODES)) == 60000


@given(st.binary(max_size=200), st.integers(0, 50))
def test_lines_measure_as_they_do_byte_by_byte(data: bytes, open_line: int) -> None:
    length = longest = open_line
    for byte in data:
        length = 0 if byte in CANONICAL.breaks else length + 1
        longest = max(longest, length)
    assert measure_lines(data, CANONICAL, open_line) == (longest, length)


def test_only_ctrl_c_alone_is_an_interrupt() -> None:
    assert all(is_interrupt(_input(keys=[key])) for key in ("ctrl-c", "Ctrl+C", "^C"))
    assert is_interrupt(_input(data=b"\x03"))
    assert not is_interrupt(_input(data=b"\x03", keys=["ctrl-c"]))
    assert not is_interrupt(_input(data=b"x\x03"))
    assert not is_interrupt(_input(keys=["ctrl-c"], eof=True))
