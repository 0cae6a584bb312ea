"""Types the inputs of a session on a terminal, as the terminal is set at that moment."""

import fcntl
import os
import sys
import termios
from collections.abc import Callable
from typing import Final

from controller_client.holder.input.keys import (
    TerminalModes,
    encode_input,
    measure_lines,
    read_modes,
)
from controller_client.holder.input.open_line import LineKeys, OpenLine
from controller_client.holder.input.queue import InputTarget
from controller_client.program.process import Process
from controller_client.protocol.messages import SendInput
from controller_client.terminal_state import TerminalWatcher

_TIOCSIG: Final = 0x40045436
_TIOCGPTPEER: Final = 0x5441
_FIONREAD: Final = 0x541B
# The line discipline holds 4096 bytes; with less than this unread, ctrl-c is seen as soon as it is
# typed.
_UNREAD_LIMIT_BYTES: Final = 2048


class TerminalTarget(InputTarget):
    """The terminal of a program.

    ``on_typed`` is called when the kernel took something, ``is_queue_blocked`` says whether inputs
    wait for room.
    """

    def __init__(
        self,
        process: Process,
        watcher: TerminalWatcher,
        *,
        on_typed: Callable[[], None],
        is_queue_blocked: Callable[[], bool],
    ) -> None:
        self._process = process
        self._watcher = watcher
        self._on_typed = on_typed
        self._is_queue_blocked = is_queue_blocked
        self._open_line_bytes = 0
        self._line = OpenLine()

    def encode(self, command: SendInput) -> bytes:
        """Return the bytes to type, as the terminal is set now. Raises InputRefused."""
        return encode_input(
            command,
            read_modes(self._process.input_fd),
            open_line_bytes=self._open_line_bytes,
            application_cursor=self._watcher.application_cursor,
        )

    def type_bytes(self, data: bytes) -> int:
        """Write what the terminal has room for; return how many bytes."""
        if self._process.input_fd < 0:
            return 0
        modes, keys = read_modes(self._process.input_fd), LineKeys.read(self._process.input_fd)
        self._watcher.before_input(data)
        taken = self._process.write(data)
        if taken:
            self._line.typed(data[:taken], keys)
            self._open_line_bytes = (
                measure_lines(data[:taken], modes, self._open_line_bytes)[1]
                if modes.is_canonical
                else 0
            )
            self._on_typed()
        return taken

    def holds_part(self) -> bool:
        """Return whether a line was begun here and not ended."""
        return self._line.holds_part

    def on_taken(self, command: SendInput) -> None:
        """Do nothing: the end of the input was typed with the rest."""

    def interrupt(self, _command: SendInput) -> bool:
        """Drop unread input and signal by the terminal, if ctrl-c would wait behind that input."""
        if self._process.input_fd < 0:
            return False
        modes = read_modes(self._process.input_fd)
        is_done = _interrupt_past_input(
            self._process.input_fd,
            modes,
            is_queue_blocked=self._is_queue_blocked(),
            before=lambda: self._watcher.before_input(modes.interrupt),
        )
        if is_done:
            self._open_line_bytes = 0
            self._line.clear()
            self._on_typed()
        return is_done


def _interrupt_past_input(
    master: int, modes: TerminalModes, *, is_queue_blocked: bool, before: Callable[[], None]
) -> bool:
    """Send SIGINT to the foreground group and drop unread input, as ctrl-c does.

    ``before`` is called right before that: no claim from earlier stands any more.
    Returns False if ctrl-c is to be typed: little is unread, raw mode, or not Linux.
    """
    if not sys.platform.startswith("linux") or not modes.has_signals or modes.interrupt != b"\x03":
        return False
    try:
        slave = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        unread = int.from_bytes(fcntl.ioctl(slave, _FIONREAD, bytes(4)), sys.byteorder)
        if not is_queue_blocked and unread < _UNREAD_LIMIT_BYTES:
            return False
        before()
        termios.tcflush(slave, termios.TCIFLUSH)
        fcntl.ioctl(master, _TIOCSIG, 2)
    except (OSError, termios.error):
        return False
    finally:
        os.close(slave)
    return True
