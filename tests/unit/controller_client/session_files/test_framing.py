"""Frames between daemon and holder come out as they went in, and have a largest size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.errors import FrameTooLarge
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.session_files.framing import Unpacker, pack


@given(
    frames=st.lists(st.binary(max_size=200), max_size=8),
    cuts=st.lists(st.integers(1, 50), max_size=40),
)
def test_frames_come_out_as_they_went_in_wherever_the_stream_is_cut(
    frames: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(pack(frame) for frame in frames)
    unpacker = Unpacker()
    seen: list[bytes] = []
    for cut in [*cuts, len(stream)]:
        piece, stream = stream[:cut], stream[cut:]
        seen += unpacker.feed(piece)
    seen += unpacker.feed(stream)
    assert seen == frames


def test_a_frame_of_one_byte_over_the_limit_is_refused_before_sending() -> None:
    frame = b"x" * MAX_FRAME_BYTES
    assert Unpacker().feed(pack(frame)) == [frame]
    with pytest.raises(FrameTooLarge):
        pack(frame + b"x")


def test_a_length_over_the_limit_is_refused_before_its_bytes_arrive() -> None:
    with pytest.raises(FrameTooLarge):
        Unpacker().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))
