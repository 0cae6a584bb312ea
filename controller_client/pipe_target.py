"""Where the inputs of a session on pipes go: bytes as they are, the end of the input by closing it, ctrl-c as the signal it stands for."""

from collections.abc import Callable
from typing import Final

from controller_client.process import Process
from controller_client.protocol.messages import Failure, SendInput
from controller_client.terminal_input import RAW_MODES, InputRefused, encode_input

STDIN_CLOSED: Final = Failure(code="STDIN_CLOSED", message="the program's standard input is closed")
_END_KEY: Final = "ctrl-d"


class PipeTarget:
    """An InputTarget. ``interrupt_tree`` sends SIGINT to every process of the session."""

    def __init__(self, process: Process, *, interrupt_tree: Callable[[], None]) -> None:
        self._process = process
        self._interrupt_tree = interrupt_tree

    def encode(self, command: SendInput) -> bytes:
        """The bytes to write. Raises InputRefused."""
        if self._process.input_fd < 0:
            raise InputRefused(STDIN_CLOSED.code, STDIN_CLOSED.message)
        keys = command.keys[:-1] if _ends_input(command) else command.keys
        if {"ctrl-c", _END_KEY} & set(keys):
            raise InputRefused(
                "NOT_A_TERMINAL", "without a terminal ctrl-c is a signal and has to be sent alone, and ctrl-d ends the input"
            )
        plain = SendInput(seq=0, session_id="", input_seq=0, data=command.data, keys=keys, secret=command.secret, may_echo=command.may_echo)
        return encode_input(plain, RAW_MODES, open_line_bytes=0, application_cursor=False, is_asking_for_secret=False)

    def type_bytes(self, data: bytes) -> int:
        """Write what the pipe has room for."""
        return self._process.write(data)

    def on_taken(self, command: SendInput) -> None:
        """All of an input is in the pipe; if it was the last one, the program is to see the end behind it."""
        if _ends_input(command):
            self._process.close_input()

    def interrupt(self, command: SendInput) -> bool:
        """The key ctrl-c is SIGINT. The byte is a byte: pipes carry all of them."""
        if not command.keys:
            return False
        self._interrupt_tree()
        return True


def _ends_input(command: SendInput) -> bool:
    return command.eof or command.keys[-1:] == [_END_KEY]
