"""One session moved on in memory: offsets, chunks, verdicts."""

from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.errors import OffsetAhead
from controller_client.protocol.limits import MAX_CHUNK_BYTES
from projects.link.inbound.session_draft import SessionDraft, SessionRow, TerminalVerdict
from tests.support.running.property_settings import STEADY

ID = uuid4()


def _draft(
    *, stdout: int = 0, stderr: int = 0, chunk_seq: int = 0, input_acked: int = 0
) -> SessionDraft:
    return SessionDraft(
        SessionRow(
            ID,
            "RUNNING",
            stdout,
            stderr,
            chunk_seq,
            input_acked,
            "running",
            "",
            "",
            "",
            "",
            0,
            0,
            epoch=1,
        )
    )


def _verdict(
    draft: SessionDraft, *, offset: int, input_seq: int = 0, state: str = "awaiting_input"
) -> bool:
    return draft.take_verdict(
        TerminalVerdict(
            state=state,
            kind="line",
            evidence="kernel",
            prompt="> ",
            detail="",
            offset=offset,
            input_seq=input_seq,
        )
    )


def test_frames_that_follow_each_other_become_one_chunk() -> None:
    draft = _draft(stdout=10, chunk_seq=4)
    assert draft.take_output("stdout", 10, b"ab")
    assert draft.take_output("stdout", 12, b"cd")
    assert [(c.offset, c.seq, c.data) for c in draft.chunks()] == [(10, 5, b"abcd")]
    assert draft.columns()[:3] == [14, 0, 5]


def test_chunks_keep_the_order_between_streams_and_their_limit() -> None:
    draft = _draft()
    draft.take_output("stdout", 0, b"a")
    draft.take_output("stderr", 0, b"b")
    draft.take_output("stdout", 1, b"c" * MAX_CHUNK_BYTES)
    draft.take_output("stdout", 1 + MAX_CHUNK_BYTES, b"d")
    assert [(c.stream, c.offset, c.seq, len(c.data)) for c in draft.chunks()] == [
        ("stdout", 0, 1, 1),
        ("stderr", 0, 2, 1),
        ("stdout", 1, 3, MAX_CHUNK_BYTES),
        ("stdout", 1 + MAX_CHUNK_BYTES, 4, 1),
    ]


def test_a_gap_keeps_what_is_before_and_behind_it_apart() -> None:
    draft = _draft()
    draft.take_output("stdout", 0, b"ab")
    assert draft.take_gap("stdout", 1, 6) == (2, 6)
    assert draft.take_gap("stdout", 1, 6) is None
    draft.take_output("stdout", 6, b"cd")
    assert [(c.offset, c.data) for c in draft.chunks()] == [(0, b"ab"), (6, b"cd")]


def test_a_duplicate_changes_nothing_and_is_acknowledged_again() -> None:
    draft = _draft(stdout=5)
    assert not draft.take_output("stdout", 0, b"01234")
    assert not draft.is_changed
    assert [(a.stream, a.offset) for a in draft.acks()] == [("stdout", 5)]


def test_an_empty_frame_that_only_carries_a_verdict_is_not_acknowledged() -> None:
    draft = _draft()
    draft.take_output("stdout", 0, b"")
    assert _verdict(draft, offset=0)
    assert draft.acks() == []
    assert draft.is_changed


def test_output_that_skips_bytes_is_refused_and_changes_nothing() -> None:
    draft = _draft(stdout=5)
    with pytest.raises(OffsetAhead):
        draft.take_output("stdout", 6, b"x")
    assert not draft.is_changed
    assert draft.chunks() == []


def test_an_older_verdict_or_one_about_output_that_is_not_here_is_ignored() -> None:
    draft = _draft(stdout=10)
    assert _verdict(draft, offset=10, input_seq=2)
    assert not _verdict(draft, offset=10, input_seq=2), "the same again is no news"
    assert not _verdict(draft, offset=9, input_seq=2)
    assert not _verdict(draft, offset=10, input_seq=1)
    assert not _verdict(draft, offset=11, input_seq=3)
    assert _verdict(draft, offset=10, input_seq=2, state="running")
    assert draft.columns()[-2:] == [10, 2]


def test_acknowledged_inputs_only_grow() -> None:
    draft = _draft(input_acked=3)
    draft.take_input_ack(2)
    assert not draft.is_changed
    draft.take_input_ack(4)
    assert draft.columns()[3] == 4


@STEADY
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=30))
def test_whatever_is_resent_each_byte_is_kept_once(frames: list[tuple[int, int]]) -> None:
    produced = bytes(range(100))
    draft = _draft()
    for offset, size in frames:
        data = produced[offset : offset + size]
        try:
            draft.take_output("stdout", offset, data)
        except OffsetAhead:
            assert offset > draft.next_offset("stdout")
    kept = b"".join(chunk.data for chunk in draft.chunks())
    assert kept == produced[: draft.next_offset("stdout")]
