"""When output and verdicts leave, and when the program has to wait."""

import pytest

from controller_client.holder.output.pump import STALLED_SECONDS, OutputPump
from controller_client.protocol.errors import LocalProtocolError
from controller_client.protocol.limits import COALESCE_SECONDS, MAX_CHUNK_BYTES
from controller_client.protocol.messages import (
    Gap,
    HostTime,
    InteractiveOutput,
    OverflowPolicy,
    TerminalReport,
)

KILOBYTE = 1024
WINDOW = 256 * KILOBYTE


def _pump(
    *,
    ring_bytes: int = 1024 * KILOBYTE,
    overflow: OverflowPolicy = "truncate",
    attached: bool = True,
) -> OutputPump:
    pump = OutputPump("s", ["stdout"], ring_bytes=ring_bytes, overflow=overflow)
    if attached:
        pump.attach({"stdout": 0}, WINDOW, 0.0)
        assert list(pump.frames(0.0)) == []
    return pump


def _waiting(offset: int, input_seq: int = 0) -> TerminalReport:
    return TerminalReport(
        state="awaiting_input", offset=offset, input_seq=input_seq, kind="line", evidence="kernel"
    )


def _running(offset: int, detail: str = "") -> TerminalReport:
    return TerminalReport(state="running", offset=offset, input_seq=0, detail=detail)


def _sent(pump: OutputPump, now: float) -> list[tuple[int, bytes, str | None]]:
    frames = list(pump.frames(now))
    assert all(isinstance(frame, InteractiveOutput) for frame in frames)
    return [
        (f.offset, f.data, f.terminal.state if f.terminal else None)
        for f in frames
        if isinstance(f, InteractiveOutput)
    ]


def test_a_verdict_that_is_sent_again_keeps_its_time() -> None:
    pump = _pump()
    made = HostTime(wall=1e9, clock=3.0)
    pump.report(_waiting(0), 3.0, at=made)
    first = list(pump.frames(3.0))
    pump.detach()
    pump.attach({"stdout": 0}, WINDOW, 60.0)
    frames = [*first, *pump.frames(60.0)]
    sent = [f.terminal_at for f in frames if isinstance(f, InteractiveOutput)]
    assert sent == [made, made]


def test_an_outdated_claim_that_the_program_waits_is_not_repeated() -> None:
    pump = _pump()
    pump.produce("stdout", b"name: ", 1.0)
    pump.report(_waiting(6), 1.0)
    assert _sent(pump, 1.0) == [(0, b"name: ", "awaiting_input")]
    pump.detach()
    pump.produce("stdout", b"ada", 2.0)
    pump.attach({"stdout": 6}, WINDOW, 3.0)
    assert _sent(pump, 3.0) == [(6, b"ada", None)]
    pump.report(_waiting(9), 4.0)
    assert _sent(pump, 4.0) == [(9, b"", "awaiting_input")]


def test_without_room_only_the_pause_of_the_program_has_a_deadline() -> None:
    pump = _pump(ring_bytes=KILOBYTE)
    pump.produce("stdout", b"x" * 600, 1.0)
    assert pump.deadline(1.0) == 1.0 + COALESCE_SECONDS
    assert pump.deadline(1.0, has_room=False) == 1.0 + STALLED_SECONDS


def test_output_waits_for_its_neighbours_and_no_longer() -> None:
    pump = _pump()
    pump.produce("stdout", b"ab", 1.0)
    assert _sent(pump, 1.0) == []
    assert pump.deadline(1.0) == 1.0 + COALESCE_SECONDS
    pump.produce("stdout", b"cd", 1.01)
    assert _sent(pump, 1.0 + COALESCE_SECONDS) == [(0, b"abcd", None)]
    assert pump.deadline(2.0) is None


def test_a_full_chunk_leaves_at_once() -> None:
    pump = _pump()
    pump.produce("stdout", b"x" * MAX_CHUNK_BYTES, 1.0)
    assert [(offset, len(data)) for offset, data, _ in _sent(pump, 1.0)] == [(0, MAX_CHUNK_BYTES)]


def test_a_prompt_takes_its_output_along_at_once() -> None:
    pump = _pump()
    pump.produce("stdout", b"name: ", 1.0)
    pump.report(_waiting(6), 1.0)
    assert _sent(pump, 1.0) == [(0, b"name: ", "awaiting_input")]
    pump.report(_waiting(6), 2.0)
    assert _sent(pump, 9.0) == []


def test_a_verdict_without_output_travels_alone() -> None:
    pump = _pump()
    pump.report(_waiting(0), 1.0)
    assert _sent(pump, 1.0) == [(0, b"", "awaiting_input")]


def test_a_short_run_between_two_prompts_is_not_told() -> None:
    pump = _pump()
    pump.report(_waiting(0), 1.0)
    _sent(pump, 1.0)
    pump.report(_running(0), 2.0)
    assert _sent(pump, 2.0) == []
    pump.report(_waiting(0, input_seq=1), 2.001)
    assert _sent(pump, 2.001) == [(0, b"", "awaiting_input")]


def test_a_longer_run_is_told_and_what_it_does_now_and_then() -> None:
    pump = _pump()
    pump.report(_waiting(0), 1.0)
    _sent(pump, 1.0)
    pump.report(_running(0), 2.0)
    assert pump.deadline(2.0) == 2.0 + COALESCE_SECONDS
    assert _sent(pump, 2.0 + COALESCE_SECONDS) == [(0, b"", "running")]
    pump.report(_running(0, "sleep[1]"), 2.1)
    assert _sent(pump, 2.2) == []
    assert _sent(pump, 3.2) == [(0, b"", "running")]
    pump.report(_running(0, "sleep[1]"), 4.0)
    assert pump.deadline(4.0) is None


def test_a_verdict_that_output_overtook_is_never_sent() -> None:
    pump = _pump()
    pump.produce("stdout", b"x" * WINDOW, 1.0)
    _sent(pump, 1.0)
    pump.report(_waiting(WINDOW), 1.0)
    pump.produce("stdout", b"more", 1.0)
    pump.acknowledge("stdout", WINDOW, 1.1)
    assert _sent(pump, 1.2) == [(WINDOW, b"more", None)]


def test_a_verdict_waits_for_the_window_with_the_output_it_is_about() -> None:
    pump = _pump()
    pump.produce("stdout", b"x" * (WINDOW + 4), 1.0)
    pump.report(_waiting(WINDOW + 4), 1.0)
    assert {state for _, _, state in _sent(pump, 1.0)} == {None}
    assert pump.deadline(1.0) is None
    pump.acknowledge("stdout", WINDOW, 1.1)
    assert _sent(pump, 1.1) == [(WINDOW, b"xxxx", "awaiting_input")]


def test_a_new_daemon_is_told_everything_again() -> None:
    pump = _pump()
    pump.produce("stdout", b"name: ", 1.0)
    pump.report(_waiting(6), 1.0)
    _sent(pump, 1.0)
    pump.detach()
    assert _sent(pump, 2.0) == []
    pump.attach({"stdout": 0}, WINDOW, 3.0)
    assert _sent(pump, 3.0) == [(0, b"name: ", "awaiting_input")]
    pump.attach({"stdout": 6}, WINDOW, 4.0)
    assert _sent(pump, 4.0) == [(6, b"", "awaiting_input")]


def test_an_offset_never_reached_is_refused() -> None:
    with pytest.raises(LocalProtocolError):
        _pump().attach({"stdout": 1}, WINDOW, 1.0)


def test_a_backlog_pauses_the_program_only_while_the_server_takes_output() -> None:
    pump = _pump(ring_bytes=100 * KILOBYTE)
    pump.produce("stdout", b"x" * 60 * KILOBYTE, 5.0)
    assert pump.read_budget(5.0) == 0
    pump.flush()
    _sent(pump, 5.0)
    assert pump.deadline(5.0) == 5.0 + STALLED_SECONDS
    assert pump.read_budget(5.0 + STALLED_SECONDS) > 0
    pump.acknowledge("stdout", 20 * KILOBYTE, 7.0)
    assert pump.read_budget(7.0) > 0


def test_an_unattached_program_runs_on_and_loses_its_oldest_output() -> None:
    pump = _pump(ring_bytes=10 * KILOBYTE, attached=False)
    for number in range(20):
        assert pump.read_budget(1.0) > 0
        pump.produce("stdout", bytes([number]) * KILOBYTE, 1.0)
    pump.attach({"stdout": 0}, WINDOW, 2.0)
    gap, *frames = list(pump.frames(2.0))
    assert isinstance(gap, Gap)
    assert (gap.from_offset, gap.to_offset, gap.reason) == (0, 10 * KILOBYTE, "ring_overflow")
    assert b"".join(frame.data for frame in frames if isinstance(frame, InteractiveOutput))[0] == 10


def test_a_blocking_ring_is_never_overfilled() -> None:
    pump = _pump(ring_bytes=10_000, overflow="block", attached=False)
    while budget := pump.read_budget(1.0):
        pump.produce("stdout", b"x" * min(budget, 3000), 1.0)
    assert pump.sender.backlog_bytes == 10_000
    pump.attach({"stdout": 0}, WINDOW, 2.0)
    assert not [frame for frame in pump.frames(2.0) if isinstance(frame, Gap)]
    pump.acknowledge("stdout", 4000, 2.0)
    assert pump.read_budget(2.0) == 4000


def test_a_caller_that_stops_in_the_middle_comes_back_for_the_rest() -> None:
    pump = _pump()
    pump.produce("stdout", b"x" * 3 * MAX_CHUNK_BYTES, 1.0)
    first = next(iter(pump.frames(1.0)))
    assert isinstance(first, InteractiveOutput)
    assert [offset for offset, _, _ in _sent(pump, 2.0)] == [MAX_CHUNK_BYTES, 2 * MAX_CHUNK_BYTES]


def test_it_knows_since_when_nothing_of_what_is_missing_was_recorded() -> None:
    pump = _pump()
    assert pump.unrecorded_since is None
    pump.produce("stdout", b"abcd", 1.0)
    pump.produce("stdout", b"ef", 2.0)
    list(pump.frames(2.5))
    assert pump.unrecorded_since == 1.0
    # Another connection records nothing by itself.
    pump.attach({"stdout": 0}, WINDOW, 3.0)
    list(pump.frames(3.0))
    assert pump.unrecorded_since == 1.0
    pump.acknowledge("stdout", 4, 4.0)
    assert pump.unrecorded_since == 4.0
    pump.acknowledge("stdout", 4, 5.0)
    assert pump.unrecorded_since == 4.0
    pump.acknowledge("stdout", 6, 6.0)
    assert pump.unrecorded_since is None
    # The ACK was lost with its connection: the next one begins behind what it was about.
    pump.produce("stdout", b"gh", 7.0)
    list(pump.frames(8.0))
    pump.detach()
    pump.attach({"stdout": 8}, WINDOW, 9.0)
    assert pump.unrecorded_since is None
