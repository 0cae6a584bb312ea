"""The ring holds exactly the newest unreleased bytes, whatever it is asked to do."""

import sys
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller_client.protocol.errors import LocalProtocolError
from controller_client.protocol.limits import RING_BYTES
from controller_client.protocol.output_ring import OutputRing
from tests.support.running.property_settings import STEADY

KIB = 1024


def test_bytes_are_read_back_from_any_held_offset() -> None:
    ring = OutputRing(100)
    assert ring.append(b"hello ") is None
    assert ring.append(b"world") is None
    assert (ring.first_offset, ring.next_offset, ring.size_bytes, ring.free_bytes) == (
        0,
        11,
        11,
        89,
    )
    assert ring.read(0, 100) == b"hello world"
    assert ring.read(4, 3) == b"o w"
    assert ring.read(11, 5) == b""
    assert ring.read(3, 0) == b""


def test_overflow_drops_the_oldest_bytes_and_names_them() -> None:
    ring = OutputRing(10)
    ring.append(b"0123456789")
    assert ring.append(b"abc") == (0, 3)
    assert ring.append(b"d") == (3, 4)
    assert (ring.first_offset, ring.next_offset) == (4, 14)
    assert ring.read(4, 100) == b"456789abcd"


def test_a_write_larger_than_the_ring_loses_its_own_beginning() -> None:
    ring = OutputRing(4)
    ring.append(b"ab")
    assert ring.append(b"0123456789") == (0, 8)
    assert ring.read(8, 100) == b"6789"
    assert ring.append(b"xyz") == (8, 11)
    assert ring.read(11, 100) == b"9xyz"


def test_a_write_of_exactly_the_capacity_replaces_everything() -> None:
    ring = OutputRing(4)
    ring.append(b"ab")
    assert ring.append(b"0123") == (0, 2)
    assert ring.read(2, 100) == b"0123"


def test_released_bytes_make_room_and_are_not_lost() -> None:
    ring = OutputRing(10)
    ring.append(b"0123456789")
    ring.release(6)
    assert ring.append(b"abcdef") is None
    assert ring.read(6, 100) == b"6789abcdef"


def test_an_old_release_is_ignored() -> None:
    ring = OutputRing(10)
    ring.append(b"0123456789")
    ring.release(6)
    ring.release(2)
    assert ring.first_offset == 6


@pytest.mark.parametrize("offset", [-1, 2, 11])
def test_reading_bytes_that_are_not_held_is_an_error(offset: int) -> None:
    ring = OutputRing(10)
    ring.append(b"0123456789")
    ring.release(3)
    with pytest.raises(LocalProtocolError):
        ring.read(offset, 1)


def test_negative_sizes_and_releases_past_the_end_fail_without_effect() -> None:
    ring = OutputRing(10)
    ring.append(b"0123")
    with pytest.raises(LocalProtocolError):
        ring.read(0, -1)
    with pytest.raises(LocalProtocolError):
        ring.release(5)
    assert ring.read(0, 10) == b"0123"


def test_a_ring_without_capacity_is_refused() -> None:
    with pytest.raises(LocalProtocolError):
        OutputRing(0)


def test_the_digest_covers_every_byte_ever_appended() -> None:
    ring = OutputRing(3)
    for data in (b"first", b"", b"second", b"third"):
        ring.append(data)
    ring.release(ring.next_offset)
    assert ring.sha256_hex() == sha256(b"firstsecondthird").hexdigest()


def test_reads_cross_the_borders_of_segments() -> None:
    ring = OutputRing(300 * KIB)
    stream = bytes(range(256)) * 1600  # 400 KiB
    for start in range(0, len(stream), 1000):
        ring.append(stream[start : start + 1000])
    first = ring.first_offset
    assert first == len(stream) - 300 * KIB
    assert ring.read(first, 300 * KIB) == stream[first:]
    assert ring.read(first + 64 * KIB - 1, 3) == stream[first + 64 * KIB - 1 : first + 64 * KIB + 2]


def test_memory_follows_what_is_held_even_when_it_comes_byte_by_byte() -> None:
    ring = OutputRing()
    assert ring.capacity_bytes == RING_BYTES
    for _ in range(200 * KIB):
        ring.append(b"x")
    assert _memory_bytes(ring) < 1.3 * 200 * KIB + 8 * KIB
    ring.release(ring.next_offset)
    assert _memory_bytes(ring) < 2 * KIB


def test_memory_does_not_grow_with_the_stream() -> None:
    ring = OutputRing(256 * KIB)
    for _ in range(100):
        ring.append(b"x" * 100_000)
    assert ring.next_offset == 10_000_000
    assert _memory_bytes(ring) < 2 * 256 * KIB


def _memory_bytes(ring: OutputRing) -> int:
    return sys.getsizeof(ring._segments) + sum(map(sys.getsizeof, ring._segments))


@given(st.lists(st.binary(max_size=200_000), max_size=6), st.integers(1, 200_000))
@settings(STEADY, max_examples=40)
def test_the_ring_holds_the_tail_of_the_written_bytes(writes: list[bytes], capacity: int) -> None:
    ring = OutputRing(capacity)
    for data in writes:
        ring.append(data)
    stream = b"".join(writes)
    assert ring.read(ring.first_offset, len(stream)) == stream[-capacity:]


class RingAgainstItsModel(RuleBasedStateMachine):
    """The model keeps the whole stream and two numbers."""

    CAPACITY = 64

    def __init__(self) -> None:
        super().__init__()
        self.ring = OutputRing(self.CAPACITY)
        self.stream = b""
        self.first = 0

    @rule(data=st.binary(max_size=150))
    def append(self, data: bytes) -> None:
        self.stream += data
        first = max(self.first, len(self.stream) - self.CAPACITY)
        assert self.ring.append(data) == ((self.first, first) if first > self.first else None)
        self.first = first

    @rule(part=st.floats(0, 1))
    def release(self, part: float) -> None:
        offset = int(part * len(self.stream))
        self.ring.release(offset)
        self.first = max(self.first, offset)

    @rule(part=st.floats(0, 1), size=st.integers(0, 100))
    def read(self, part: float, size: int) -> None:
        offset = self.first + int(part * (len(self.stream) - self.first))
        assert self.ring.read(offset, size) == self.stream[offset : offset + size]

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        assert (self.ring.first_offset, self.ring.next_offset) == (self.first, len(self.stream))
        assert self.ring.read(self.first, self.CAPACITY) == self.stream[self.first :]
        assert self.ring.size_bytes <= self.CAPACITY


TestRingAgainstItsModel = RingAgainstItsModel.TestCase
TestRingAgainstItsModel.settings = settings(STEADY, max_examples=60, stateful_step_count=40)
