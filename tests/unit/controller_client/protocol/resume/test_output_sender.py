"""The sender offers every byte from any offset on, or says exactly which are gone."""

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller_client.protocol.errors import AckAhead, LocalProtocolError
from controller_client.protocol.limits import MAX_CHUNK_BYTES
from controller_client.protocol.messages import (
    Gap,
    HostTime,
    InteractiveOutput,
    Stream,
    StreamFinal,
    StreamPosition,
)
from controller_client.protocol.resume import OutputSender, StreamReceiver
from tests.support.running.property_settings import STEADY

Piece = tuple[str, int, bytes] | tuple[str, int, int, str]


def _sender(
    *, ring_bytes: int = 1000, streams: Sequence[Stream] = ("stdout", "stderr")
) -> OutputSender:
    return OutputSender(session_id="s", streams=streams, ring_bytes=ring_bytes)


def _pieces(sender: OutputSender) -> list[Piece]:
    """Return everything that the sender sends now, in short."""
    pieces: list[Piece] = []
    while (frame := sender.next_frame()) is not None:
        assert frame.session_id == "s"
        if isinstance(frame, Gap):
            pieces.append((frame.stream, frame.from_offset, frame.to_offset, frame.reason))
        else:
            pieces.append((frame.stream, frame.offset, frame.data))
    return pieces


def test_nothing_is_sent_before_an_attach() -> None:
    sender = _sender()
    sender.produce("stdout", b"abc")
    assert (sender.next_frame(), sender.is_attached, sender.is_drained, sender.unsent_bytes) == (
        None,
        False,
        False,
        3,
    )


def test_output_that_is_sent_again_keeps_the_times_of_its_production() -> None:
    sender = _sender(streams=["stdout"])
    times = [HostTime(wall=1e9 + second, clock=float(second)) for second in range(3)]
    sender.attach({"stdout": 0}, 1000)
    sender.produce("stdout", b"ab", times[0])
    first = sender.next_frame()
    sender.detach()
    sender.produce("stdout", b"cd", times[1])
    sender.produce("stdout", b"ef", times[2])
    sender.attach({"stdout": 1}, 1000)
    again = [sender.next_frame() for _ in range(3)]
    sent = [(f.data, f.at) for f in (first, *again) if isinstance(f, InteractiveOutput)]
    assert sent == [
        (b"ab", times[0]),
        (b"b", times[0]),
        (b"cd", times[1]),
        (b"ef", times[2]),
    ]


def test_streams_are_sent_in_the_order_of_their_production() -> None:
    sender = _sender()
    written: list[tuple[Stream, bytes]] = [
        ("stdout", b"a"),
        ("stdout", b"b"),
        ("stderr", b"!"),
        ("stdout", b"c"),
    ]
    for stream, data in written:
        sender.produce(stream, data)
    sender.attach({}, 100)
    assert _pieces(sender) == [("stdout", 0, b"ab"), ("stderr", 0, b"!"), ("stdout", 2, b"c")]
    assert sender.is_drained
    assert (sender.unsent_bytes, sender.unacknowledged_bytes, sender.backlog_bytes) == (0, 4, 4)


@pytest.mark.requirement("S3.C1.4")
def test_a_frame_carries_no_more_than_a_chunk() -> None:
    sender = _sender(ring_bytes=4 * MAX_CHUNK_BYTES)
    sender.produce("stdout", b"x" * (MAX_CHUNK_BYTES + 1))
    sender.attach({}, 4 * MAX_CHUNK_BYTES)
    sizes = [
        len(frame.data)
        for frame in iter(sender.next_frame, None)
        if isinstance(frame, InteractiveOutput)
    ]
    assert sizes == [MAX_CHUNK_BYTES, 1]


def test_sequence_numbers_rise_across_streams_resends_and_verdicts() -> None:
    sender = _sender()
    sender.produce("stdout", b"a")
    sender.produce("stderr", b"b")
    sender.attach({}, 100)
    first = [
        frame.seq for frame in iter(sender.next_frame, None) if isinstance(frame, InteractiveOutput)
    ]
    verdict = sender.verdict_seq()
    sender.attach({}, 100)
    again = [
        frame.seq for frame in iter(sender.next_frame, None) if isinstance(frame, InteractiveOutput)
    ]
    numbers = [*first, verdict, *again]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 5


def test_a_full_window_stops_the_sender_until_an_acknowledgement() -> None:
    sender = _sender()
    sender.produce("stdout", b"0123456789")
    sender.attach({}, 4)
    assert _pieces(sender) == [("stdout", 0, b"0123")]
    sender.acknowledge("stdout", 3)
    assert (sender.unacknowledged_bytes, sender.backlog_bytes) == (1, 7)
    assert _pieces(sender) == [("stdout", 4, b"456")]
    assert not sender.is_drained


def test_the_window_is_shared_by_the_streams() -> None:
    sender = _sender()
    sender.produce("stdout", b"0123")
    sender.produce("stderr", b"abcd")
    sender.attach({}, 6)
    assert _pieces(sender) == [("stdout", 0, b"0123"), ("stderr", 0, b"ab")]


def test_a_stale_or_repeated_acknowledgement_is_ignored() -> None:
    sender = _sender()
    sender.produce("stdout", b"0123")
    sender.attach({}, 100)
    _pieces(sender)
    for offset in (3, 3, 1):
        sender.acknowledge("stdout", offset)
    assert sender.positions()[0] == StreamPosition(stream="stdout", first_offset=3, next_offset=4)


def test_acknowledging_unsent_bytes_is_a_peer_error_and_changes_nothing() -> None:
    sender = _sender()
    sender.produce("stdout", b"0123456789")
    sender.attach({}, 4)
    _pieces(sender)
    with pytest.raises(AckAhead):
        sender.acknowledge("stdout", 5)
    assert (sender.backlog_bytes, sender.unacknowledged_bytes) == (10, 4)


def test_attaching_again_repeats_the_uncommitted_bytes_cut_anew() -> None:
    sender = _sender()
    sender.produce("stdout", b"abcd")
    sender.produce("stderr", b"!!")
    sender.produce("stdout", b"ef")
    sender.attach({}, 100)
    _pieces(sender)
    sender.detach()
    assert (sender.unsent_bytes, sender.unacknowledged_bytes) == (8, 0)
    sender.attach({"stdout": 3, "stderr": 0}, 100)
    assert _pieces(sender) == [("stdout", 3, b"d"), ("stderr", 0, b"!!"), ("stdout", 4, b"ef")]


def test_attaching_acknowledges_what_the_server_has() -> None:
    sender = _sender()
    sender.produce("stdout", b"abcdef")
    sender.attach({"stdout": 4}, 100)
    assert (sender.backlog_bytes, sender.free_bytes("stdout")) == (2, 998)


def test_a_late_acknowledgement_while_detached_still_makes_room() -> None:
    sender = _sender()
    sender.produce("stdout", b"abcdef")
    sender.attach({}, 100)
    _pieces(sender)
    sender.detach()
    sender.acknowledge("stdout", 6)
    assert (sender.backlog_bytes, sender.unsent_bytes) == (0, 0)
    sender.attach({"stdout": 6}, 100)
    assert sender.is_drained


def test_overflow_is_an_exact_gap_in_front_of_what_is_left() -> None:
    sender = _sender(ring_bytes=4)
    sender.produce("stdout", b"0123456789")
    sender.produce("stderr", b"!")
    sender.attach({}, 100)
    assert _pieces(sender) == [
        ("stdout", 0, 6, "ring_overflow"),
        ("stdout", 6, b"6789"),
        ("stderr", 0, b"!"),
    ]
    assert sender.unacknowledged_bytes == 5


def test_a_full_window_gathers_everything_dropped_into_one_gap() -> None:
    sender = _sender(ring_bytes=4)
    sender.produce("stdout", b"0123")
    sender.attach({}, 2)
    assert _pieces(sender) == [("stdout", 0, b"01")]
    for _ in range(3):
        sender.produce("stdout", b"abcd")
        assert sender.next_frame() is None
    sender.acknowledge("stdout", 2)
    assert _pieces(sender) == [("stdout", 2, 12, "ring_overflow"), ("stdout", 12, b"ab")]
    assert sender.unacknowledged_bytes == 2
    sender.acknowledge("stdout", 14)
    assert _pieces(sender) == [("stdout", 14, b"cd")]


def test_a_gap_under_way_does_not_count_as_bytes_in_flight() -> None:
    sender = _sender(ring_bytes=4)
    sender.produce("stdout", b"0123456789")
    sender.attach({}, 3)
    assert _pieces(sender) == [("stdout", 0, 6, "ring_overflow"), ("stdout", 6, b"678")]
    sender.acknowledge("stdout", 2)
    assert sender.unacknowledged_bytes == 3
    sender.acknowledge("stdout", 7)
    assert sender.unacknowledged_bytes == 2


def test_bytes_the_server_had_and_lost_are_a_gap_of_their_own_kind() -> None:
    sender = _sender(ring_bytes=4)
    sender.produce("stdout", b"0123")
    sender.attach({"stdout": 3}, 100)
    sender.detach()
    sender.produce("stdout", b"456789")
    sender.attach({"stdout": 1}, 100)
    assert _pieces(sender) == [
        ("stdout", 1, 3, "lost"),
        ("stdout", 3, 6, "ring_overflow"),
        ("stdout", 6, b"6789"),
    ]


def test_a_gap_that_is_acknowledged_is_not_sent_again() -> None:
    sender = _sender(ring_bytes=4)
    sender.produce("stdout", b"0123456789")
    sender.attach({"stdout": 6}, 100)
    assert _pieces(sender) == [("stdout", 6, b"6789")]


@pytest.mark.parametrize(
    ("expected", "window"),
    [({"stdout": 4}, 100), ({"stdout": -1}, 100), ({"stderr": 1}, 100), ({"stdout": 1}, 0)],
)
def test_an_impossible_attach_changes_nothing(expected: dict[Stream, int], window: int) -> None:
    sender = _sender(streams=("stdout",))
    sender.produce("stdout", b"abc")
    with pytest.raises(LocalProtocolError):
        sender.attach(expected, window)
    assert (sender.is_attached, sender.backlog_bytes) == (False, 3)


def test_a_missing_stream_may_be_named_at_offset_zero_but_not_written() -> None:
    sender = _sender(streams=("stdout",))
    sender.attach({"stdout": 0, "stderr": 0}, 100)
    with pytest.raises(LocalProtocolError):
        sender.produce("stderr", b"x")


def test_finals_cover_the_whole_stream() -> None:
    sender = _sender(ring_bytes=2, streams=("stdout",))
    sender.produce("stdout", b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sender.finals() == [StreamFinal(stream="stdout", next_offset=3, sha256=digest)]


class SenderAndReceivers(RuleBasedStateMachine):
    """A sender, a wire that may lose its last frames, and a server that commits in order.

    Delivered bytes and gaps together are always a prefix of the stream.
    """

    RING = 40
    WINDOW = 24

    def __init__(self) -> None:
        super().__init__()
        self.sender = _sender(ring_bytes=self.RING)
        self.produced: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self.received: dict[Stream, bytes] = {"stdout": b"", "stderr": b""}
        self.receivers = {stream: StreamReceiver(0, stream=stream) for stream in self.produced}
        self.wire: list[InteractiveOutput | Gap] = []
        self.acks: list[tuple[Stream, int]] = []

    @rule(stream=st.sampled_from(["stdout", "stderr"]), data=st.binary(max_size=60))
    def produce(self, stream: Stream, data: bytes) -> None:
        self.produced[stream] += data
        self.sender.produce(stream, data)

    @rule()
    def attach(self) -> None:
        self.wire.clear()
        self.sender.attach(
            {stream: receiver.expected for stream, receiver in self.receivers.items()}, self.WINDOW
        )

    @rule()
    def detach(self) -> None:
        self.wire.clear()
        self.sender.detach()

    @rule(frames=st.integers(1, 5))
    def send(self, frames: int) -> None:
        for _ in range(frames):
            if (frame := self.sender.next_frame()) is not None:
                self.wire.append(frame)

    @precondition(lambda self: self.wire)
    @rule(frames=st.integers(1, 5), twice=st.booleans())
    def arrive(self, frames: int, twice: bool) -> None:
        arrived, self.wire = self.wire[:frames], self.wire[frames:]
        for frame in arrived * 2 if twice else arrived:
            self._commit(frame)

    @precondition(lambda self: self.acks)
    @rule(index=st.integers(0, 1000))
    def acknowledge(self, index: int) -> None:
        self.sender.acknowledge(*self.acks[index % len(self.acks)])

    def _commit(self, frame: InteractiveOutput | Gap) -> None:
        receiver, stream = self.receivers[frame.stream], frame.stream
        if isinstance(frame, Gap):
            gap = receiver.accept_gap(frame.from_offset, frame.to_offset)
            # What is gone cannot be compared: the model takes it as it was.
            self.received[stream] += self.produced[stream][slice(*gap)] if gap is not None else b""
        else:
            self.received[stream] += receiver.accept(frame.offset, frame.data)[1]
        self.acks.append((stream, receiver.expected))

    @invariant()
    def delivered_and_gaps_are_a_prefix(self) -> None:
        for stream, received in self.received.items():
            assert self.produced[stream].startswith(received)
            assert len(received) == self.receivers[stream].expected

    @invariant()
    def the_window_and_the_rings_hold(self) -> None:
        assert 0 <= self.sender.unacknowledged_bytes <= self.WINDOW
        assert self.sender.backlog_bytes <= 2 * self.RING
        assert 0 <= self.sender.unsent_bytes <= self.sender.backlog_bytes

    def teardown(self) -> None:
        self.attach()
        while not self.sender.is_drained or self.wire:
            self.send(5)
            self.arrive(len(self.wire), twice=False)
            for stream, receiver in self.receivers.items():
                self.sender.acknowledge(stream, receiver.expected)
        assert self.received == self.produced


TestSenderAndReceivers = SenderAndReceivers.TestCase
TestSenderAndReceivers.settings = settings(STEADY, max_examples=60, stateful_step_count=40)
