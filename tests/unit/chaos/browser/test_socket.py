"""The harness reads the frames of the console's socket as a browser does."""

import asyncio
import json
from typing import Any

import pytest

from chaos.browser.socket import BrokenError, Socket


class _Sent:
    """The far end of a connection: keeps what is written to it."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        """Everything is under way at once."""


def _frame(kind: int, data: bytes, *, is_last: bool = True) -> bytes:
    size = bytes([len(data)]) if len(data) < 126 else bytes([126]) + len(data).to_bytes(2)
    return bytes([kind | (0x80 if is_last else 0)]) + size + data


def _socket(*frames: bytes) -> tuple[Socket, _Sent]:
    reader, sent = asyncio.StreamReader(), _Sent()
    writer: Any = sent
    reader.feed_data(b"".join(frames))
    reader.feed_eof()
    return Socket(reader, writer), sent


async def test_a_text_is_a_message_and_bytes_are_output() -> None:
    output = bytes([1]) + (70_000).to_bytes(8) + b"x" * 300
    socket, _ = _socket(_frame(1, json.dumps({"type": "taken"}).encode()), _frame(2, output))
    assert await socket.receive() == {"type": "taken"}
    told = {"type": "output", "stream": "stderr", "offset": 70_000, "data": b"x" * 300}
    assert await socket.receive() == told


async def test_a_message_may_come_in_pieces_with_a_ping_between() -> None:
    pieces = [_frame(1, b'{"type":', is_last=False), _frame(9, b"?"), _frame(0, b'"taken"}')]
    socket, sent = _socket(*pieces)
    assert await socket.receive() == {"type": "taken"}
    head, mask = sent.data[:2], sent.data[2:6]
    assert head == bytes([0x8A, 0x81])
    assert sent.data[6] ^ mask[0] == ord("?")


@pytest.mark.parametrize("frames", [[], [_frame(8, b"\x03\xe8")], [_frame(2, b"x" * 9)[:5]]])
async def test_a_connection_that_ends_is_broken(frames: list[bytes]) -> None:
    socket, _ = _socket(*frames)
    with pytest.raises(BrokenError):
        await socket.receive()
