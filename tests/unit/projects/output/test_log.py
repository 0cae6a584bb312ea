"""Stored output: any offset reads back what was stored, a gap shows as a gap, and old bytes make
room.
"""

import random
from hashlib import sha256

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controller_client.protocol.limits import MAX_CHUNK_BYTES
from controller_client.protocol.messages import StreamFinal
from projects.models import CommandSession, OutputChunk, OutputGap
from projects.output import log as output_log
from projects.output.log import GapRange, NewChunk
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> CommandSession:
    return make_session(make_controller())


def _store(session: CommandSession, *chunks: tuple[int, bytes]) -> None:
    output_log.append(
        [
            NewChunk(session.id, "stdout", offset, seq, data)
            for seq, (offset, data) in enumerate(chunks)
        ]
    )
    end = max(offset + len(data) for offset, data in chunks)
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=end)


def test_a_read_starts_and_ends_inside_chunks(session: CommandSession) -> None:
    _store(session, (0, b"abc"), (3, b"def"), (6, b"ghi"))
    assert output_log.read(session.id, "stdout", 2, 5) == (b"cdefg", [])
    assert output_log.read(session.id, "stdout", 8, 100) == (b"i", [])
    assert output_log.read(session.id, "stdout", 9, 100) == (b"", [])
    assert output_log.read(session.id, "stderr", 0, 100) == (b"", [])


def test_binary_output_is_kept_byte_for_byte(session: CommandSession) -> None:
    data = bytes(range(256)) + "é😀".encode()[:-1]
    _store(session, (0, data))
    assert output_log.read(session.id, "stdout", 0, 1000).data == data


def test_a_full_read_costs_one_statement_at_any_offset(session: CommandSession) -> None:
    _store(session, *((i * 100, b"x" * 100) for i in range(50)))
    for offset in (0, 4000):
        with CaptureQueriesContext(connection) as queries:
            assert len(output_log.read(session.id, "stdout", offset, 150).data) == 150
        assert len(queries) == 1


def test_a_gap_at_the_start_is_skipped_whatever_its_size(session: CommandSession) -> None:
    _store(session, (10**9, b"tail"))
    output_log.add_gap(session.id, "stdout", 0, 10**9, "retention")
    found = output_log.read(session.id, "stdout", 5, 100)
    assert found == (b"tail", [GapRange(5, 10**9, "retention")])
    assert found.next_offset(5) == 10**9 + 4


@pytest.mark.parametrize("seed", range(25))
def test_paging_through_chunks_and_gaps_accounts_for_every_byte_once(
    session: CommandSession, seed: int
) -> None:
    rng = random.Random(seed)
    position, expected = 0, []
    for seq in range(rng.randint(1, 30)):
        size = rng.choice([1, 2, 7, 50, MAX_CHUNK_BYTES])
        if rng.random() < 0.3:
            output_log.add_gap(session.id, "stdout", position, position + size, "ring_overflow")
            expected.append((position, position + size, None))
        else:
            data = rng.randbytes(size)
            output_log.append([NewChunk(session.id, "stdout", position, seq, data)])
            expected.append((position, position + size, data))
        position += size
    wanted = {
        "data": b"".join(data for _, _, data in expected if data),
        "lost": sum(e - s for s, e, data in expected if data is None),
    }

    offset, data, lost = rng.choice([0, 0, 1]), b"", 0
    skipped = offset
    page = rng.choice([1 + position // 7, 3 + position // 3, 10**6])
    while True:
        found = output_log.read(session.id, "stdout", offset, page)
        assert len(found.data) <= page
        if not found.data and not found.gaps:
            break
        data += found.data
        lost += sum(gap.to_offset - gap.from_offset for gap in found.gaps)
        offset = found.next_offset(offset)
    assert offset == position
    assert len(data) + lost + skipped == position
    assert wanted["data"].endswith(data)
    assert wanted["lost"] - lost in (0, skipped)


def test_trimming_leaves_the_newest_bytes_and_one_exact_gap(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_log, "TRIM_SLACK_BYTES", 100)
    monkeypatch.setattr(output_log, "TRIM_CHUNKS_PER_TRANSACTION", 4)
    _store(session, *((i * 100, bytes([i]) * 100) for i in range(20) if i != 3))
    output_log.add_gap(session.id, "stdout", 300, 400, "ring_overflow")
    dropped = 0
    while step := output_log.trim(session.id, "stdout", 500):
        dropped += step
    session.refresh_from_db()
    assert (dropped, session.stdout_first_offset) == (1500, 1500)
    assert list(OutputGap.objects.values_list("from_offset", "to_offset", "reason")) == [
        (0, 1500, "retention")
    ]
    assert output_log.read(session.id, "stdout", 1500, 10**6).data == b"".join(
        bytes([i]) * 100 for i in range(15, 20)
    )
    assert OutputChunk.objects.count() == 5


@pytest.mark.parametrize("has_chunks", [True, False])
def test_trimming_goes_on_behind_a_gap_that_leads(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch, has_chunks: bool
) -> None:
    monkeypatch.setattr(output_log, "TRIM_SLACK_BYTES", 100)
    output_log.add_gap(session.id, "stdout", 0, 1000, "ring_overflow")
    if has_chunks:
        _store(session, *((1000 + i * 100, bytes([i]) * 100) for i in range(3)))
        output_log.add_gap(session.id, "stdout", 1300, 2000, "ring_overflow")
    end = 2000 if has_chunks else 1000
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=end)
    while output_log.trim(session.id, "stdout", 500):
        pass
    session.refresh_from_db()
    assert session.stdout_first_offset == end
    assert list(OutputGap.objects.values_list("from_offset", "to_offset", "reason")) == [
        (0, end, "retention")
    ]
    assert not OutputChunk.objects.exists()


def test_trimming_keeps_what_a_leading_gap_leaves(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_log, "TRIM_SLACK_BYTES", 100)
    output_log.add_gap(session.id, "stdout", 0, 1000, "ring_overflow")
    _store(session, *((1000 + i * 100, bytes([i]) * 100) for i in range(3)))
    assert output_log.trim(session.id, "stdout", 500) == 1000
    assert output_log.trim(session.id, "stdout", 500) == 0
    assert OutputChunk.objects.count() == 3


def test_what_is_within_the_limit_is_not_trimmed(session: CommandSession) -> None:
    _store(session, (0, b"x" * 1000))
    assert output_log.trim(session.id, "stdout", 500) == 0
    assert OutputChunk.objects.count() == 1


def _final(next_offset: int, content: bytes) -> StreamFinal:
    return StreamFinal(stream="stdout", next_offset=next_offset, sha256=sha256(content).hexdigest())


def test_a_stream_that_stayed_empty_has_a_digest_too(session: CommandSession) -> None:
    assert output_log.verify(session.id, [_final(0, b"")]) == []
    session.refresh_from_db()
    assert session.stdout_sha256_ok is True
    assert output_log.verify(session.id, [_final(0, b"x")]) == ["stdout"]


def test_the_digest_of_a_finished_stream_is_compared(session: CommandSession) -> None:
    _store(session, (0, b"abc"), (3, b"def"))
    assert output_log.verify(session.id, [_final(6, b"abcdef")]) == []
    session.refresh_from_db()
    assert session.stdout_sha256_ok is True
    assert output_log.verify(session.id, [_final(6, b"abcdeX")]) == ["stdout"]
    session.refresh_from_db()
    assert session.stdout_sha256_ok is False


def test_a_digest_over_lost_bytes_says_nothing(session: CommandSession) -> None:
    _store(session, (3, b"def"))
    output_log.add_gap(session.id, "stdout", 0, 3, "ring_overflow")
    assert output_log.verify(session.id, [_final(6, b"")]) == []
    session.refresh_from_db()
    assert session.stdout_sha256_ok is None


def test_pieces_are_bytes_and_gaps_in_their_order(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_log, "PIECE_BYTES", 4)
    _store(session, (0, b"abcdef"), (8, b"ijk"))
    output_log.add_gap(session.id, "stdout", 6, 8, "ring_overflow")
    assert list(output_log.pieces(session.id, "stdout", 1, 10)) == [
        b"bcde",
        b"f",
        GapRange(6, 8, "ring_overflow"),
        b"ij",
    ]
    assert list(output_log.pieces(session.id, "stdout", 5, 7)) == [
        b"f",
        GapRange(6, 7, "ring_overflow"),
    ]
    assert list(output_log.pieces(session.id, "stdout", 0, 6)) == [b"abcd", b"ef"]


def test_pieces_of_a_range_that_ends_inside_a_gap_hold_nothing_behind_it(
    session: CommandSession,
) -> None:
    _store(session, (0, b"ab"), (20, b"cdefgh"), (30, b"ij"))
    output_log.add_gap(session.id, "stdout", 2, 20, "ring_overflow")
    output_log.add_gap(session.id, "stdout", 26, 30, "retention")
    assert list(output_log.pieces(session.id, "stdout", 0, 15)) == [
        b"ab",
        GapRange(2, 15, "ring_overflow"),
    ]


def test_clearing_takes_everything_away_batch_by_batch(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_log, "TRIM_CHUNKS_PER_TRANSACTION", 2)
    _store(session, *((n * 2, b"xy") for n in range(5)))
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=10, stderr_next_offset=0)
    rounds = 1
    while output_log.clear(session.id):
        rounds += 1
    assert rounds == 3
    session.refresh_from_db()
    assert (session.stdout_first_offset, session.stdout_next_offset) == (10, 10)
    assert output_log.read(session.id, "stdout", 0, 10) == (b"", [GapRange(0, 10, "retention")])
