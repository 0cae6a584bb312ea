"""Writes the inputs of a session on pipes.

Bytes are written as they are, the end of the input closes the pipe, and ctrl-c is the signal that
it stands for.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from controller_client.holder.input.keys import RAW_MODES, InputRefused, encode_input
from controller_client.holder.input.queue import InputTarget
from controller_client.program.process import Process
from controller_client.protocol.keys import canonical_key
from controller_client.protocol.messages import Failure, SendInput

STDIN_CLOSED: Final = Failure(code="STDIN_CLOSED", message="the program's standard input is closed")
_END_KEY: Final = "ctrl-d"


class PipeTarget(InputTarget):
    """The pipe of a program. ``interrupt_tree`` sends SIGINT to every process of the session."""

    def __init__(self, process: Process, *, interrupt_tree: Callable[[], None]) -> None:
        self._process = process
        self._interrupt_tree = interrupt_tree
        self._last_byte = b""

    def encode(self, command: SendInput) -> bytes:
        """Return the bytes to write. Raises InputRefused."""
        if self._process.input_fd < 0:
            raise InputRefused(STDIN_CLOSED.code, STDIN_CLOSED.message)
        keys = command.keys[:-1] if _ends_with_end(command) else command.keys
        if {"ctrl-c", _END_KEY} & {*map(canonical_key, keys)}:
            raise InputRefused(
                "NOT_A_TERMINAL",
                (
                    "without a terminal ctrl-c is a signal and has to be sent alone, and ctrl-d "
                    "ends the input"
                ),
            )
        # The end of the input is typed on a terminal only.
        plain = msgspec.structs.replace(command, keys=keys, eof=False)
        return encode_input(plain, RAW_MODES, open_line_bytes=0, application_cursor=False)

    def type_bytes(self, data: bytes) -> int:
        """Write what the pipe has room for; return how many bytes."""
        taken = self._process.write(data)
        self._last_byte = data[:taken][-1:] or self._last_byte
        return taken

    def holds_part(self) -> bool:
        """Return whether the last line that was written has no end."""
        return self._last_byte not in (b"", b"\n")

    def on_taken(self, command: SendInput) -> None:
        """Close the pipe behind the last input, so that the program sees the end."""
        if _ends_input(command):
            self._process.close_input()

    def interrupt(self, command: SendInput) -> bool:
        """Send SIGINT for the key ctrl-c. The byte ctrl-c is written: pipes carry all bytes."""
        if not command.keys:
            return False
        self._interrupt_tree()
        return True


def _ends_input(command: SendInput) -> bool:
    return command.eof or _ends_with_end(command)


def _ends_with_end(command: SendInput) -> bool:
    return [*map(canonical_key, command.keys[-1:])] == [_END_KEY]
