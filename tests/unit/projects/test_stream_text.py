"""Streams as text: whole characters whatever the range, gaps counted, the middle left out of what is too long."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller_client.protocol.messages import Stream
from projects import output_log
from projects.models import CommandSession
from projects.output_log import NewChunk
from projects.stream_text import read_ends, read_in_order, read_text
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> CommandSession:
    return make_session(make_controller())


def _store(session: CommandSession, *chunks: tuple[int, bytes], stream: Stream = "stdout") -> None:
    output_log.append([NewChunk(session.id, stream, offset, seq, data) for seq, (offset, data) in enumerate(chunks)])


def test_bytes_come_as_they_are_with_control_characters_and_invalid_ones_replaced(session: CommandSession) -> None:
    _store(session, (0, b"a\x1b[1mb\r\x00\xff\n"))
    found = read_text(session.id, "stdout", 0, 10, is_final=False)
    assert (found.text, found.offset, found.next_offset, found.lost_bytes) == ("a\x1b[1mb\r\x00\ufffd\n", 0, 10, 0)


def test_an_incomplete_character_is_held_back_until_it_is_complete_or_never_will_be(session: CommandSession) -> None:
    _store(session, (0, b"x\xe2\x82"))
    assert read_text(session.id, "stdout", 0, 3, is_final=False).next_offset == 1
    last = read_text(session.id, "stdout", 1, 3, is_final=True)
    assert (last.text, last.next_offset) == ("\ufffd", 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(text=st.text(alphabet="aé€𝄞", min_size=1, max_size=8), cut=st.integers(min_value=0, max_value=32), chunk=st.integers(1, 5))
def test_reading_on_from_any_next_offset_gives_every_character_once(session: CommandSession, text: str, cut: int, chunk: int) -> None:
    data = text.encode()
    output_log.OutputChunk.objects.filter(session=session).delete()
    _store(session, *((start, data[start : start + chunk]) for start in range(0, len(data), chunk)))
    cut = min(cut, len(data))
    first = read_text(session.id, "stdout", 0, cut, is_final=False)
    rest = read_text(session.id, "stdout", first.next_offset, len(data), is_final=True)
    assert first.text + rest.text == text
    inside = read_text(session.id, "stdout", cut, len(data), is_final=True)
    assert inside.text == data[inside.offset :].decode()
    assert text.endswith(inside.text)


def test_what_is_gone_is_counted_and_never_leaves_half_a_character(session: CommandSession) -> None:
    output_log.add_gap(session.id, "stdout", 0, 4, "retention")
    _store(session, (4, b"\x82\xacab"), (14, b"cd"))
    output_log.add_gap(session.id, "stdout", 8, 14, "ring_overflow")
    found = read_text(session.id, "stdout", 0, 16, is_final=False)
    assert (found.text, found.offset, found.next_offset, found.lost_bytes) == ("abcd", 6, 16, 10)


def test_a_range_of_which_nothing_is_left_ends_at_its_end(session: CommandSession) -> None:
    output_log.add_gap(session.id, "stdout", 0, 100, "retention")
    found = read_text(session.id, "stdout", 10, 100, is_final=True)
    assert (found.text, found.next_offset, found.lost_bytes) == ("", 100, 90)


def test_an_empty_range_is_empty(session: CommandSession) -> None:
    found = read_text(session.id, "stderr", 7, 3, is_final=False)
    assert (found.text, found.offset, found.next_offset) == ("", 7, 7)


def test_of_a_stream_that_is_too_long_the_ends_are_shown(session: CommandSession) -> None:
    data = b"".join(b"line %04d\n" % n for n in range(1000))
    _store(session, (0, data))
    found = read_ends(session.id, "stdout", len(data), 1000)
    assert found.text.startswith("line 0000\n")
    assert found.text.endswith("line 0999\n")
    assert (found.omitted_bytes, found.omitted_offset, found.next_offset) == (len(data) - 1000, 250, len(data))
    assert read_ends(session.id, "stdout", len(data), len(data)).text == data.decode()


def test_both_streams_come_in_the_order_they_were_printed_the_newest_first_to_stay(session: CommandSession) -> None:
    printed: list[tuple[Stream, int, bytes]] = [
        ("stdout", 0, b"one\n"),
        ("stderr", 0, b"bad\xe2\x82"),
        ("stdout", 4, b"two\n"),
        ("stdout", 8, b"three\n"),
        ("stderr", 5, b"\xacmore\n"),
    ]
    output_log.append([NewChunk(session.id, stream, offset, seq, data) for seq, (stream, offset, data) in enumerate(printed)])
    ends: dict[Stream, int] = {"stdout": 14, "stderr": 11}
    whole = [("stdout", 0, "one\n"), ("stderr", 0, "bad"), ("stdout", 4, "two\nthree\n"), ("stderr", 3, "€more\n")]
    assert [(piece.stream, piece.offset, piece.text) for piece in read_in_order(session.id, ends, 1000)] == whole
    newest = [("stdout", 11, "ee\n"), ("stderr", 6, "more\n")]
    assert [(piece.stream, piece.offset, piece.text) for piece in read_in_order(session.id, ends, 9)] == newest
    assert read_in_order(session.id, {"stdout": 0, "stderr": 0}, 9) == []
