"""What an input becomes on pipes: bytes as they are, an end, and the signal of ctrl-c."""

from typing import Any

import pytest

from controller_client.holder.input.keys import InputRefused, is_interrupt
from controller_client.holder.input.pipe_target import PipeTarget
from controller_client.protocol.messages import SendInput


class Program:
    """The end of a pipe that a program reads from."""

    def __init__(self) -> None:
        self.input_fd = 3
        self.read = b""
        self.interrupts = 0

    def write(self, data: bytes) -> int:
        """Take all of it."""
        self.read += data
        return len(data)

    def close_input(self) -> None:
        """Be at the end of the input."""
        self.input_fd = -1

    def interrupt(self) -> None:
        """Count a SIGINT to the whole tree."""
        self.interrupts += 1


@pytest.fixture
def program() -> Program:
    return Program()


@pytest.fixture
def target(program: Program) -> PipeTarget:
    return PipeTarget(program, interrupt_tree=program.interrupt)


def _type(target: PipeTarget, **fields: Any) -> None:
    """Have an input applied as the queue of inputs does."""
    command = SendInput(seq=1, session_id="s", input_seq=1, **fields)
    if is_interrupt(command) and target.interrupt(command):
        return
    target.type_bytes(target.encode(command))
    target.on_taken(command)


@pytest.mark.parametrize(
    ("fields", "read", "is_at_end"),
    [
        ({"data": b"x" * 60_000}, b"x" * 60_000, False),
        ({"data": b"\x00\x03\x04\x1a\xff\r\n"}, b"\x00\x03\x04\x1a\xff\r\n", False),
        ({"keys": ["y", "enter"]}, b"y\r", False),
        ({"keys": ["up", "f1", "alt-x"]}, b"\x1b[A\x1bOP\x1bx", False),
        ({"secret": b"hunter2\n"}, b"hunter2\n", False),
        ({"eof": True}, b"", True),
        ({"data": b"last", "eof": True}, b"last", True),
        ({"keys": ["y", "enter"], "eof": True}, b"y\r", True),
        ({"keys": ["y", "enter", "ctrl-d"]}, b"y\r", True),
        ({"keys": ["y", "Ctrl+D"], "eof": True}, b"y", True),
        ({"keys": ["^D"]}, b"", True),
        ({"data": b"x", "keys": ["enter", "ctrl-d"], "eof": True}, b"x\r", True),
    ],
)
def test_a_pipe_carries_all_bytes_and_ends_behind_the_last(
    target: PipeTarget, program: Program, fields: dict[str, Any], read: bytes, is_at_end: bool
) -> None:
    _type(target, **fields)
    assert (program.read, program.input_fd < 0, program.interrupts) == (read, is_at_end, 0)


@pytest.mark.parametrize("key", ["ctrl-c", "Ctrl+C", "^C"])
def test_ctrl_c_alone_is_a_signal_and_writes_nothing(
    target: PipeTarget, program: Program, key: str
) -> None:
    _type(target, keys=[key])
    assert (program.read, program.input_fd, program.interrupts) == (b"", 3, 1)


@pytest.mark.parametrize(
    "keys",
    [
        ["ctrl-c", "enter"],
        ["y", "ctrl-c"],
        ["ctrl-c", "ctrl-c"],
        ["ctrl-c", "ctrl-d"],
        ["ctrl-d", "enter"],
        ["ctrl-d", "ctrl-d"],
        ["^D", "y", "^D"],
    ],
)
def test_a_signal_or_an_end_among_other_keys_is_refused(
    target: PipeTarget, program: Program, keys: list[str]
) -> None:
    with pytest.raises(InputRefused) as refused:
        _type(target, keys=keys)
    assert refused.value.failure.code == "NOT_A_TERMINAL"
    assert (program.read, program.input_fd, program.interrupts) == (b"", 3, 0)


@pytest.mark.parametrize("fields", [{"keys": ["ctrl-c"], "eof": True}, {"keys": ["x", "ctrl-c"]}])
def test_a_signal_is_no_end_of_the_input(
    target: PipeTarget, program: Program, fields: dict[str, Any]
) -> None:
    with pytest.raises(InputRefused, match="ctrl-c is a signal"):
        _type(target, **fields)
    assert program.interrupts == 0


@pytest.mark.parametrize("fields", [{"data": b"x"}, {"keys": ["enter"]}, {"eof": True}])
def test_behind_the_end_nothing_is_taken(
    target: PipeTarget, program: Program, fields: dict[str, Any]
) -> None:
    _type(target, eof=True)
    with pytest.raises(InputRefused) as refused:
        _type(target, **fields)
    assert refused.value.failure.code == "STDIN_CLOSED"


@pytest.mark.parametrize(
    "keys", [["bogus"], ["y", "bogus"], ["bogus", "ctrl-d"], [""], ["ctrl-\u00e9"]]
)
def test_a_key_that_is_none_is_refused(
    target: PipeTarget, program: Program, keys: list[str]
) -> None:
    with pytest.raises(InputRefused) as refused:
        _type(target, keys=keys)
    assert refused.value.failure.code == "UNKNOWN_KEY"
    assert program.read == b""
