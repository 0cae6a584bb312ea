"""Streams as text: whole characters whatever the range, gaps counted, the middle left out of what
is too long.
"""

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller_client.protocol.messages import Stream
from projects.models import CommandSession
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.stream_text import read_ends, read_in_order, read_text
from projects.output.view import view_page, view_turn
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> CommandSession:
    return make_session(make_controller())


def _store(session: CommandSession, *chunks: tuple[int, bytes], stream: Stream = "stdout") -> None:
    output_log.append(
        [
            NewChunk(session.id, stream, offset, seq, data)
            for seq, (offset, data) in enumerate(chunks)
        ]
    )


def test_raw_is_as_it_came_with_invalid_bytes_replaced(session: CommandSession) -> None:
    _store(session, (0, b"a\x1b[1mb\r\x00\xff\n"))
    found = read_text(session.id, "stdout", 0, 10, is_final=False, view="raw")
    assert (found.text, found.offset, found.next_offset, found.lost_bytes) == (
        "a\x1b[1mb\r\x00\ufffd\n",
        0,
        10,
        0,
    )


HOSTILE = b"\x1b]52;c;ZXZpbA==\x07\x1b[31mX\x1b[0m\r\n\xc2\x9b31mY\x00\x07 a\xe2\x80\xaeb\n"


def test_text_has_no_escape_sequences_and_no_control_characters(session: CommandSession) -> None:
    _store(session, (0, HOSTILE))
    found = read_text(session.id, "stdout", 0, len(HOSTILE), is_final=True)
    assert (found.text, found.offset, found.next_offset) == ("X\nY a\\u{202e}b\n", 0, len(HOSTILE))
    ends = read_ends(session.id, "stdout", 0, len(HOSTILE), 8, is_final=True)
    assert not any(unicodedata.category(char) == "Cc" and char != "\n" for char in ends.text)
    (piece,) = read_in_order(session.id, {"stdout": len(HOSTILE), "stderr": 0}, 1000)
    assert piece.text == found.text


@pytest.mark.parametrize("cut", range(1, len(HOSTILE)))
def test_no_window_begins_or_ends_in_an_escape_sequence(session: CommandSession, cut: int) -> None:
    _store(session, (0, HOSTILE))
    first = read_text(session.id, "stdout", 0, cut, is_final=False)
    rest = read_text(session.id, "stdout", first.next_offset, len(HOSTILE), is_final=True)
    assert first.text + rest.text in ("X\nY a\\u{202e}b\n", "X\n\nY a\\u{202e}b\n")
    anywhere = read_text(session.id, "stdout", cut, len(HOSTILE), is_final=True)
    assert "X\nY a\\u{202e}b\n".endswith(anywhere.text)
    page = view_page(session.id, cut, len(HOSTILE), 4096, is_final=True, view="text")
    assert page.text == anywhere.text
    turn = view_turn(session.id, cut, len(HOSTILE), 4096, is_final=True)
    assert turn.text == anywhere.text
    assert (page.next_offset, turn.next_offset) == (len(HOSTILE), len(HOSTILE))


def test_a_tail_does_not_show_the_rest_of_a_long_sequence(session: CommandSession) -> None:
    data = b"\x1b]52;c;" + b"QUJD" * 4000 + b"\x1b\\done\x1b(B!"
    _store(session, (0, data))
    assert view_page(session.id, 9000, len(data), 65536, is_final=True, view="text").text == "done!"
    assert read_ends(session.id, "stdout", 0, len(data), 512, is_final=True).text.endswith("done!")
    assert view_turn(session.id, 0, len(data), 512, is_final=True).text.endswith("done!")


def test_an_incomplete_character_is_held_back_until_the_stream_is_final(
    session: CommandSession,
) -> None:
    _store(session, (0, b"x\xe2\x82"))
    assert read_text(session.id, "stdout", 0, 3, is_final=False).next_offset == 1
    last = read_text(session.id, "stdout", 1, 3, is_final=True)
    assert (last.text, last.next_offset) == ("\ufffd", 3)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None
)
@given(
    text=st.text(alphabet="aé€𝄞", min_size=1, max_size=8),
    cut=st.integers(min_value=0, max_value=32),
    chunk=st.integers(1, 5),
)
def test_reading_on_from_any_next_offset_gives_every_character_once(
    session: CommandSession, text: str, cut: int, chunk: int
) -> None:
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


@pytest.mark.parametrize("start", range(9))
def test_of_a_gap_only_what_lies_in_the_range_is_told(session: CommandSession, start: int) -> None:
    _store(session, (0, b"ab"), (6, b"cde"))
    output_log.add_gap(session.id, "stdout", 2, 6, "retention")
    found = read_text(session.id, "stdout", start, 9, is_final=True)
    assert found.text == "abcde"[start if start < 2 else max(2, start - 4) :]
    assert found.lost_bytes == min(4, max(0, 6 - start))
    told = [(gap.from_offset, gap.to_offset) for gap in found.gaps]
    assert told == ([(max(2, start), 6)] if start < 6 else [])


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
    found = read_ends(session.id, "stdout", 0, len(data), 1000, is_final=True)
    assert found.text.startswith("line 0000\n")
    assert found.text.endswith("line 0999\n")
    assert (found.omitted_bytes, found.omitted_offset, found.next_offset) == (
        len(data) - 1000,
        250,
        len(data),
    )
    assert (
        read_ends(session.id, "stdout", 0, len(data), len(data), is_final=True).text
        == data.decode()
    )


def test_streams_merge_in_printed_order_and_a_budget_keeps_the_newest(
    session: CommandSession,
) -> None:
    printed: list[tuple[Stream, int, bytes]] = [
        ("stdout", 0, b"one\n"),
        ("stderr", 0, b"bad\xe2\x82"),
        ("stdout", 4, b"two\n"),
        ("stdout", 8, b"three\n"),
        ("stderr", 5, b"\xacmore\n"),
    ]
    output_log.append(
        [
            NewChunk(session.id, stream, offset, seq, data)
            for seq, (stream, offset, data) in enumerate(printed)
        ]
    )
    ends: dict[Stream, int] = {"stdout": 14, "stderr": 11}
    whole = [
        ("stdout", 0, "one\n"),
        ("stderr", 0, "bad"),
        ("stdout", 4, "two\nthree\n"),
        ("stderr", 3, "€more\n"),
    ]
    assert [
        (piece.stream, piece.offset, piece.text) for piece in read_in_order(session.id, ends, 1000)
    ] == whole
    newest = [("stdout", 11, "ee\n"), ("stderr", 6, "more\n")]
    assert [
        (piece.stream, piece.offset, piece.text) for piece in read_in_order(session.id, ends, 9)
    ] == newest
    assert read_in_order(session.id, {"stdout": 0, "stderr": 0}, 9) == []
