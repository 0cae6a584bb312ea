"""Framing on the unix socket between daemon and holder.

A frame is a 4-byte big-endian length, then that many bytes of one codec frame.
"""

import socket
import struct

from controller_client.protocol.errors import FrameTooLarge
from controller_client.protocol.limits import MAX_FRAME_BYTES

_LENGTH = struct.Struct("!I")


def pack(frame: bytes) -> bytes:
    """Return ``frame`` with its length in front. Raises FrameTooLarge over MAX_FRAME_BYTES."""
    if len(frame) > MAX_FRAME_BYTES:
        raise FrameTooLarge(len(frame), MAX_FRAME_BYTES)
    return _LENGTH.pack(len(frame)) + frame


def read_frame(connection: socket.socket) -> bytes:
    """Wait for one frame and return it; what comes behind it is not read.

    Raises EOFError at the end of the stream, FrameTooLarge over MAX_FRAME_BYTES, OSError.
    """
    (size,) = _LENGTH.unpack(_read_exactly(connection, _LENGTH.size))
    if size > MAX_FRAME_BYTES:
        raise FrameTooLarge(size, MAX_FRAME_BYTES)
    return _read_exactly(connection, size)


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


class Unpacker:
    """Cuts a byte stream back into frames; holds less than one frame between calls."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return every frame that ``data`` completes, in order.

        Raises FrameTooLarge as soon as a length over MAX_FRAME_BYTES arrives. After that the stream
        cannot be used any more.
        """
        buffer = self._buffer
        buffer += data
        frames: list[bytes] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(buffer, start)
            if size > MAX_FRAME_BYTES:
                raise FrameTooLarge(size, MAX_FRAME_BYTES)
            end = start + _LENGTH.size + size
            if len(buffer) < end:
                break
            frames.append(bytes(memoryview(buffer)[start + _LENGTH.size : end]))
            start = end
        if start:
            del buffer[:start]
        return frames
