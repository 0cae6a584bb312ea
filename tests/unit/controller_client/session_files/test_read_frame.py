"""One frame is read from a socket: whole, no byte more, and within the largest size."""

import socket
from collections.abc import Iterator

import pytest

from controller_client.protocol.errors import FrameTooLarge
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.session_files.framing import Unpacker, pack, read_frame


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a stream: the one that is read, and its peer's."""
    ours, peers = socket.socketpair()
    with ours, peers:
        for end in (ours, peers):
            end.settimeout(30)
        yield ours, peers


Ends = tuple[socket.socket, socket.socket]


@pytest.mark.parametrize("frame", [b"", b"x", b"x" * 70_000])
def test_a_frame_is_read_and_what_follows_stays(ends: Ends, frame: bytes) -> None:
    ours, peers = ends
    peers.sendall(pack(frame) + pack(b"next"))
    assert read_frame(ours) == frame
    assert read_frame(ours) == b"next"


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", b"\0\0\0\5", b"\0\0\0\5four"])
def test_a_stream_that_ends_inside_a_frame_has_no_frame(ends: Ends, sent: bytes) -> None:
    ours, peers = ends
    peers.sendall(sent)
    peers.close()
    with pytest.raises(EOFError):
        read_frame(ours)


@pytest.mark.parametrize("size", [MAX_FRAME_BYTES + 1, 2**32 - 1])
def test_a_length_over_the_limit_is_refused_before_its_bytes_are_read(
    ends: Ends, size: int
) -> None:
    ours, peers = ends
    peers.sendall(size.to_bytes(4, "big"))
    with pytest.raises(FrameTooLarge):
        read_frame(ours)


def test_a_largest_frame_is_within_the_limit(ends: Ends) -> None:
    ours, peers = ends
    ours.settimeout(0)
    peers.sendall(MAX_FRAME_BYTES.to_bytes(4, "big"))
    with pytest.raises(BlockingIOError):
        read_frame(ours)


def test_a_length_over_the_limit_behind_a_good_frame_is_refused_too() -> None:
    over = (MAX_FRAME_BYTES + 1).to_bytes(4, "big")
    with pytest.raises(FrameTooLarge):
        Unpacker().feed(pack(b"good") + over)
