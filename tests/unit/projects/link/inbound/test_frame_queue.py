"""Frames wait in order and within a bound, and small pieces of output are joined."""

import asyncio

import pytest

from controller_client.protocol.messages import (
    FromController,
    Gap,
    HostTime,
    InputAck,
    InteractiveOutput,
    Stream,
    TerminalReport,
)
from projects.link.inbound import frame_queue
from projects.link.inbound.frame_queue import FrameQueue
from projects.link.inbound.refusals import TooManyFrames


def _output(
    offset: int,
    data: bytes,
    *,
    session_id: str = "a",
    stream: Stream = "stdout",
    at: int | None = None,
) -> InteractiveOutput:
    terminal = None if at is None else TerminalReport(state="running", offset=at, input_seq=0)
    return InteractiveOutput(
        session_id=session_id, stream=stream, offset=offset, seq=1, data=data, terminal=terminal
    )


def _queued(*frames: FromController) -> FrameQueue:
    queue = FrameQueue()
    for frame in frames:
        queue.put(frame)
    return queue


def _pieces(queue: FrameQueue) -> list[tuple[str, str, int, bytes]]:
    return [
        (f.session_id, f.stream, f.offset, f.data)
        for f in queue.take(99)
        if isinstance(f, InteractiveOutput)
    ]


def test_pieces_that_follow_each_other_are_joined_session_by_session() -> None:
    queue = _queued(
        _output(0, b"ab"),
        _output(7, b"x", session_id="b"),
        _output(2, b"c"),
        _output(3, b""),
        _output(3, b"d"),
    )
    assert _pieces(queue) == [("a", "stdout", 0, b"abcd"), ("b", "stdout", 7, b"x")]


def test_the_newest_verdict_of_joined_pieces_counts() -> None:
    (joined,) = _queued(_output(0, b"ab", at=2), _output(2, b"c", at=3), _output(3, b"d")).take(9)
    assert isinstance(joined, InteractiveOutput)
    assert joined.terminal == TerminalReport(state="running", offset=3, input_seq=0)


def _printed(offset: int, clock: float) -> InteractiveOutput:
    at = HostTime(wall=1_763_850_000 + clock, clock=clock)
    told = TerminalReport(state="running", offset=offset + 1, input_seq=0)
    return InteractiveOutput(
        session_id="a",
        stream="stdout",
        offset=offset,
        seq=1,
        data=b"x",
        terminal=told,
        at=at,
        terminal_at=at,
    )


def test_pieces_that_were_printed_at_other_times_stay_apart() -> None:
    queue = _queued(_printed(0, 7.0), _printed(1, 7.05), _printed(2, 7.3), _printed(3, 9.0))
    frames = [frame for frame in queue.take(9) if isinstance(frame, InteractiveOutput)]
    assert [(f.offset, f.data, f.at and f.at.clock) for f in frames] == [
        (0, b"xx", 7.0),
        (2, b"x", 7.3),
        (3, b"x", 9.0),
    ]
    assert frames[0].terminal_at == HostTime(wall=1_763_850_007.05, clock=7.05)


def test_in_a_crowd_pieces_are_joined_whenever_they_were_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame_queue, "CROWDED_FRAMES", 2)
    queue = _queued(*[_printed(number, number) for number in range(9)])
    assert [len(data) for _, _, _, data in _pieces(queue)] == [1, 8]


@pytest.mark.parametrize(
    "between",
    [
        _output(0, b"e", stream="stderr"),
        Gap(session_id="a", stream="stdout", from_offset=2, to_offset=3, reason="lost"),
        InputAck(session_id="a", command_seq=1, input_seq=1),
        _output(1, b"b"),
        _output(2, b"y" * frame_queue.MAX_JOINED_BYTES),
    ],
    ids=["other stream", "gap", "acknowledgement", "known bytes", "too large"],
)
def test_what_does_not_go_on_directly_keeps_its_place(between: FromController) -> None:
    first = _output(0, b"ab")
    assert _queued(first, between, _output(9, b"z")).take(9)[:2] == [first, between]


def test_what_was_taken_is_not_added_to() -> None:
    queue = _queued(_output(0, b"ab"))
    assert _pieces(queue) == [("a", "stdout", 0, b"ab")]
    queue.put(_output(2, b"c"))
    assert _pieces(queue) == [("a", "stdout", 2, b"c")]


def test_everything_else_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_queue, "MAX_FRAMES", 3)
    queue = _queued(*[InputAck(session_id="a", command_seq=n, input_seq=n) for n in range(3)])
    with pytest.raises(TooManyFrames):
        queue.put(InputAck(session_id="a", command_seq=3, input_seq=3))
    assert asyncio.run(queue.get()) is not None
    queue.put(InputAck(session_id="a", command_seq=3, input_seq=3))
