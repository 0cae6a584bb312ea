"""Turns one SEND_INPUT into the bytes to type, given how the terminal is set at that moment.

In canonical mode the kernel edits lines, and cuts a line that is too long without telling anybody.
So an input with such a line is refused before a byte of it is typed.
"""

import re
import sys
import termios
from functools import lru_cache
from typing import Final, NamedTuple

from controller_client.protocol.errors import UnknownKeyName
from controller_client.protocol.keys import canonical_key, key_bytes
from controller_client.protocol.limits import (
    CANONICAL_LINE_BYTES_LINUX,
    CANONICAL_LINE_BYTES_MACOS,
    MAX_INPUT_BYTES,
    MAX_KEYS,
)
from controller_client.protocol.messages import Failure, SendInput

INTERRUPT: Final = b"\x03"
_END_OF_FILE: Final = b"\x04"
_LINE_LIMIT_BYTES: Final = (
    CANONICAL_LINE_BYTES_MACOS if sys.platform == "darwin" else CANONICAL_LINE_BYTES_LINUX
)
# A control character set to this does nothing.
_DISABLED: Final = b"\xff" if sys.platform == "darwin" else b"\x00"
_IFLAG, _LFLAG, _CC = 0, 3, 6


class InputRefused(Exception):
    """The input is not typed at all; ``failure`` says why and never quotes the input."""

    def __init__(self, code: str, message: str) -> None:
        self.failure = Failure(code=code, message=message)
        super().__init__(f"{code}: {message}")


class TerminalModes(NamedTuple):
    """The settings of a terminal that decide what typed bytes do.

    ``breaks``: bytes after which the line being edited is empty.
    """

    is_canonical: bool
    has_signals: bool
    end_of_file: bytes
    interrupt: bytes
    breaks: bytes


RAW_MODES: Final = TerminalModes(
    is_canonical=False, has_signals=False, end_of_file=_END_OF_FILE, interrupt=INTERRUPT, breaks=b""
)

NEW_MODES: Final = TerminalModes(
    is_canonical=True,
    has_signals=True,
    end_of_file=_END_OF_FILE,
    interrupt=INTERRUPT,
    breaks=b"\n\r\x03\x04\x15\x1a\x1c",
)
"""Of a terminal whose program has not changed them yet."""


def read_modes(descriptor: int) -> TerminalModes:
    """Return the modes of the terminal behind a PTY master; raw if it is no terminal, or gone."""
    try:
        attributes = termios.tcgetattr(descriptor)
    except termios.error:
        return RAW_MODES
    flags, characters = attributes[_LFLAG], attributes[_CC]
    has_signals = bool(flags & termios.ISIG)
    ends = [characters[termios.VEOF], characters[termios.VEOL], characters[termios.VKILL]]
    if has_signals:
        ends += [characters[termios.VINTR], characters[termios.VQUIT], characters[termios.VSUSP]]
    breaks = (
        b"\n"
        + (b"\r" if attributes[_IFLAG] & termios.ICRNL else b"")
        + b"".join(end for end in ends if end != _DISABLED)
    )
    end_of_file = characters[termios.VEOF]
    return TerminalModes(
        is_canonical=bool(flags & termios.ICANON),
        has_signals=has_signals,
        end_of_file=_END_OF_FILE if end_of_file == _DISABLED else end_of_file,
        interrupt=characters[termios.VINTR],
        breaks=breaks,
    )


def is_interrupt(command: SendInput) -> bool:
    """Return whether the input is ctrl-c and nothing else."""
    if command.secret is not None or command.eof:
        return False
    return ([*map(canonical_key, command.keys)] == ["ctrl-c"] and not command.data) or (
        command.data == INTERRUPT and not command.keys
    )


def encode_input(
    command: SendInput, modes: TerminalModes, *, open_line_bytes: int, application_cursor: bool
) -> bytes:
    """Return the bytes to type: data, secret, keys, then the end of the input, each if given.

    ``open_line_bytes``: length of the unfinished line that was typed before. SecretGuard decides
    whether a secret may be typed. Raises InputRefused.
    """
    typed = (
        command.data
        + (command.secret or b"")
        + _keys(command.keys, application_cursor=application_cursor)
    )
    if len(typed) > MAX_INPUT_BYTES:
        raise InputRefused(
            "INPUT_TOO_LARGE",
            f"an input of {len(typed)} bytes is over the limit of {MAX_INPUT_BYTES}",
        )
    if modes.is_canonical:
        open_line_bytes = check_lines(typed, modes, open_line_bytes)
    if command.eof:
        # On a line that is not empty, the first end-of-file character only hands over the line. On
        # an empty line it is the end of the file.
        typed += modes.end_of_file * (2 if modes.is_canonical and open_line_bytes else 1)
    return typed


def check_lines(data: bytes, modes: TerminalModes = NEW_MODES, open_line_bytes: int = 0) -> int:
    """Return the length of the line that ``data`` leaves open on a terminal that edits lines.

    Raises InputRefused if the kernel would cut a line.
    """
    longest, open_line_bytes = measure_lines(data, modes, open_line_bytes)
    if longest > _LINE_LIMIT_BYTES:
        raise InputRefused(
            "INPUT_LINE_TOO_LONG",
            (
                f"the terminal takes lines of {_LINE_LIMIT_BYTES} bytes and would cut one of "
                f"{longest} bytes"
            ),
        )
    return open_line_bytes


def measure_lines(data: bytes, modes: TerminalModes, open_line_bytes: int) -> tuple[int, int]:
    """Return the length of the longest line in ``data`` and of the line that it leaves open.

    Lengths do not count the end of a line.
    """
    pieces = _any_of(modes.breaks).split(data) if modes.breaks else [data]
    lengths = [len(piece) for piece in pieces]
    lengths[0] += open_line_bytes
    return max(lengths), lengths[-1]


@lru_cache(maxsize=8)
def _any_of(characters: bytes) -> re.Pattern[bytes]:
    return re.compile(b"[" + re.escape(characters) + b"]")


def _keys(names: list[str], *, application_cursor: bool) -> bytes:
    if len(names) > MAX_KEYS:
        raise InputRefused(
            "INPUT_TOO_LARGE", f"{len(names)} keys are over the limit of {MAX_KEYS} in one input"
        )
    try:
        return b"".join(key_bytes(name, application_cursor=application_cursor) for name in names)
    except UnknownKeyName as error:
        raise InputRefused("UNKNOWN_KEY", str(error)) from None
