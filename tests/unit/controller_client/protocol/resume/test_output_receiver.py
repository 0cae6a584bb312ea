"""The receiver takes each byte once; the window is enforced against any sender."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_client.protocol.errors import (
    BadFrame,
    LocalProtocolError,
    OffsetAhead,
    WindowViolated,
)
from controller_client.protocol.limits import (
    CONNECTION_WINDOW_BYTES,
    MAX_CHUNK_BYTES,
    SESSION_WINDOW_BYTES,
)
from controller_client.protocol.resume import ReceiveWindow, StreamReceiver
from tests.support.running.property_settings import STEADY


@pytest.mark.parametrize(
    ("offset", "data", "accepted", "expected"),
    [
        (10, b"abc", (10, b"abc"), 13),
        (8, b"abcd", (10, b"cd"), 12),
        (5, b"abc", (10, b""), 10),
        (7, b"abc", (10, b""), 10),
        (10, b"", (10, b""), 10),
        (3, b"", (10, b""), 10),
    ],
    ids=["new", "partly known", "known", "just known", "verdict only", "old verdict"],
)
def test_only_new_bytes_are_taken(
    offset: int, data: bytes, accepted: tuple[int, bytes], expected: int
) -> None:
    receiver = StreamReceiver(10)
    assert receiver.accept(offset, data) == accepted
    assert receiver.expected == expected


@pytest.mark.parametrize("data", [b"", b"abc"])
def test_a_jump_without_a_gap_is_the_peers_error_and_changes_nothing(data: bytes) -> None:
    receiver = StreamReceiver(10, stream="stderr")
    with pytest.raises(OffsetAhead) as raised:
        receiver.accept(11, data)
    assert (raised.value.stream, raised.value.expected, receiver.expected) == ("stderr", 10, 10)
    assert str(raised.value) == "stderr jumped from 10 to 11 without a gap"


@pytest.mark.parametrize(
    ("gap", "new"), [((10, 20), (10, 20)), ((4, 20), (10, 20)), ((4, 10), None), ((10, 10), None)]
)
def test_only_the_new_part_of_a_gap_is_taken(
    gap: tuple[int, int], new: tuple[int, int] | None
) -> None:
    receiver = StreamReceiver(10)
    assert receiver.accept_gap(*gap) == new
    assert receiver.expected == (20 if new else 10)


def test_a_gap_may_not_jump_either() -> None:
    with pytest.raises(OffsetAhead):
        StreamReceiver(10).accept_gap(11, 20)


@pytest.mark.parametrize("gap", [(-1, 5), (8, 7), (0, 2**63)])
def test_a_gap_out_of_bounds_is_a_bad_frame(gap: tuple[int, int]) -> None:
    with pytest.raises(BadFrame):
        StreamReceiver(10).accept_gap(*gap)


@pytest.mark.requirement("S3.C1.4")
def test_a_chunk_over_the_limit_or_before_the_beginning_is_a_bad_frame() -> None:
    receiver = StreamReceiver(0)
    with pytest.raises(BadFrame):
        receiver.accept(0, b"x" * (MAX_CHUNK_BYTES + 1))
    with pytest.raises(BadFrame):
        receiver.accept(-1, b"xy")
    assert receiver.expected == 0


def test_the_largest_chunk_and_the_last_offset_are_taken() -> None:
    receiver = StreamReceiver(0)
    assert receiver.accept(0, b"x" * MAX_CHUNK_BYTES) == (0, b"x" * MAX_CHUNK_BYTES)
    assert receiver.accept_gap(0, 2**63 - 1) == (MAX_CHUNK_BYTES, 2**63 - 1)
    with pytest.raises(BadFrame):
        receiver.accept(2**63 - 1, b"x")
    assert receiver.expected == 2**63 - 1


@given(
    st.binary(max_size=50), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=30)
)
@settings(STEADY)
def test_overlapping_pieces_in_any_order_never_repeat_a_byte(
    stream: bytes, cuts: list[tuple[int, int]]
) -> None:
    receiver, taken = StreamReceiver(0), b""
    for offset, size in cuts:
        if offset <= receiver.expected:
            taken += receiver.accept(offset, stream[offset : offset + size])[1]
    assert taken == stream[: receiver.expected]


def test_a_session_may_overshoot_its_window_by_less_than_a_chunk_more() -> None:
    window = ReceiveWindow()
    window.received("a", SESSION_WINDOW_BYTES)
    window.received("a", MAX_CHUNK_BYTES)
    with pytest.raises(WindowViolated):
        window.received("a", 1)
    assert window.in_flight_bytes == SESSION_WINDOW_BYTES + MAX_CHUNK_BYTES
    window.received("b", 1)


def test_all_sessions_together_stay_in_the_connections_window() -> None:
    window = ReceiveWindow()
    for name in "ab":
        window.received(name, SESSION_WINDOW_BYTES)
    window.received("c", MAX_CHUNK_BYTES)
    with pytest.raises(WindowViolated, match=f" {CONNECTION_WINDOW_BYTES + MAX_CHUNK_BYTES}$"):
        window.received("d", 1)


def test_committing_opens_the_window_again() -> None:
    window = ReceiveWindow(session_window_bytes=10, connection_window_bytes=10)
    window.received("a", MAX_CHUNK_BYTES + 10)
    window.committed("a", MAX_CHUNK_BYTES + 10)
    window.received("a", MAX_CHUNK_BYTES + 10)
    window.committed("a", 5)
    assert window.in_flight_bytes == MAX_CHUNK_BYTES + 5


def test_bytes_are_committed_in_parts_and_the_rest_stays_in_the_window() -> None:
    window = ReceiveWindow()
    window.received("a", 10)
    window.received("b", 1)
    window.committed("a", 4)
    window.committed("a", 6)
    assert window.in_flight_bytes == 1
    for session in ("a", "never seen"):
        with pytest.raises(LocalProtocolError):
            window.committed(session, 1)


def test_committing_more_than_was_received_is_our_error() -> None:
    window = ReceiveWindow()
    window.received("a", 3)
    with pytest.raises(LocalProtocolError):
        window.committed("a", 4)
    assert window.in_flight_bytes == 3


def test_a_session_without_bytes_in_flight_is_forgotten() -> None:
    window = ReceiveWindow()
    for n in range(100):
        window.received(f"{n} without bytes", 0)
        window.received(str(n), 0)
        window.received(str(n), 7)
        window.committed(str(n), 7)
    assert window._per_session == {}
