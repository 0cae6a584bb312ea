"""Ranges of output within a budget: no skip is silent, and no character is cut."""

import base64
import re

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from controller_client.protocol.terminal_text.unseen import visible
from controller_client.protocol.terminal_text.view import text_of
from projects.models import CommandSession, OutputChunk, OutputGap
from projects.output import log as output_log
from projects.output.log import GapRange, NewChunk
from projects.output.view import View, glance_at_screen, view_page, view_screen, view_turn
from projects.secrets.masks import secret_mask
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> CommandSession:
    return make_session(make_controller())


def _store(session: CommandSession, data: bytes, offset: int = 0) -> int:
    pieces = [
        NewChunk(session.id, "stdout", offset + start, start, data[start : start + 1000])
        for start in range(0, len(data), 1000)
    ]
    output_log.append(pieces)
    return offset + len(data)


def test_what_fits_is_shown_whole(session: CommandSession) -> None:
    end = _store(session, b"\x1b[1mhello\x1b[0m\r\n")
    shown = view_turn(session.id, 0, end, 1000, is_final=False)
    assert (shown.text, shown.next_offset, shown.omitted_bytes, shown.gaps) == (
        "hello\n",
        end,
        0,
        (),
    )


def test_an_incomplete_character_waits_for_the_next_call_unless_final(
    session: CommandSession,
) -> None:
    end = _store(session, "ok é".encode()[:-1])
    assert view_turn(session.id, 0, end, 1000, is_final=False).next_offset == end - 1
    last = view_turn(session.id, 0, end, 1000, is_final=True)
    assert (last.text, last.next_offset) == ("ok �", end)


def test_output_over_the_budget_keeps_head_and_tail_and_counts_the_middle(
    session: CommandSession,
) -> None:
    data = b"".join(b"line %04d\r\n" % number for number in range(1000))
    end = _store(session, data)
    shown = view_turn(session.id, 0, end, 1024, is_final=True)
    assert shown.text.startswith("line 0000\n")
    assert shown.text.endswith("line 0999\n")
    assert shown.omitted_offset is not None
    head, tail = data[: shown.omitted_offset], data[shown.omitted_offset + shown.omitted_bytes :]
    assert shown.text == (
        f"{text_of(head)}\n[… {shown.omitted_bytes} bytes left out from offset "
        f"{len(head)} on …]\n{text_of(tail)}"
    )
    assert len(head) + len(tail) <= 1024


@pytest.mark.parametrize("gap_end", [1500, 2000])
def test_what_is_lost_where_the_tail_begins_was_not_left_out(
    session: CommandSession, gap_end: int
) -> None:
    _store(session, b"a" * 1300)
    output_log.add_gap(session.id, "stdout", 1300, gap_end, "ring_overflow")
    _store(session, b"b" * (2000 - gap_end), gap_end)
    shown = view_turn(session.id, 0, 2000, 800, is_final=True)
    assert (shown.omitted_offset, shown.omitted_bytes) == (200, 1200)
    assert shown.lost_bytes == gap_end - 1400


def test_a_gap_is_shown_where_it_is(session: CommandSession) -> None:
    _store(session, b"before\r\n")
    output_log.add_gap(session.id, "stdout", 8, 108, "ring_overflow")
    end = _store(session, b"after\r\n", 108)
    shown = view_turn(session.id, 0, end, 1000, is_final=True)
    assert shown.text == "before\n\n[… 100 bytes are lost: ring_overflow …]\nafter\n"
    assert [(gap.from_offset, gap.to_offset, gap.reason) for gap in shown.gaps] == [
        (8, 108, "ring_overflow")
    ]
    inside = view_turn(session.id, 50, end, 1000, is_final=True)
    assert [(gap.from_offset, gap.to_offset) for gap in inside.gaps] == [(50, 108)]


def test_a_page_with_a_gap_ends_where_it_should_and_the_next_goes_on_there(
    session: CommandSession,
) -> None:
    _store(session, b"a" * 10)
    output_log.add_gap(session.id, "stdout", 10, 20, "ring_overflow")
    end = _store(session, b"b" * 30, offset=20)
    first = view_page(session.id, 0, end, 25, is_final=False, view="raw")
    second = view_page(session.id, first.next_offset, end, 25, is_final=False, view="raw")
    assert (first.next_offset, base64.b64decode(first.output_base64 or "")) == (
        25,
        b"a" * 10 + b"b" * 5,
    )
    assert (second.next_offset, base64.b64decode(second.output_base64 or "")) == (50, b"b" * 25)


@pytest.mark.parametrize("view", ["text", "raw"])
@pytest.mark.parametrize("start", [0, 4, 5000])
def test_a_gap_of_any_length_is_passed_in_one_page(
    session: CommandSession, start: int, view: View
) -> None:
    _store(session, b"a" * 4)
    output_log.add_gap(session.id, "stdout", 4, 2**40, "ring_overflow")
    end = _store(session, b"b" * 30, offset=2**40)
    first = view_page(session.id, start, end, 10, is_final=True, view=view)
    lost_from = max(start, 4)
    assert first.gaps == (GapRange(lost_from, 2**40, "ring_overflow"),)
    assert first.next_offset == 2**40
    second = view_page(session.id, first.next_offset, end, 10, is_final=True, view=view)
    assert second.next_offset == 2**40 + 10


def test_raw_pages_hold_every_byte(session: CommandSession) -> None:
    data = bytes(range(256)) * 5
    end = _store(session, data)
    first = view_page(session.id, 0, end, 700, is_final=True, view="raw")
    second = view_page(session.id, first.next_offset, end, 700, is_final=True, view="raw")
    assert (
        base64.b64decode(first.output_base64 or "") + base64.b64decode(second.output_base64 or "")
        == data
    )
    assert second.next_offset == end


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25
)
@given(st.text(min_size=1, max_size=120), st.integers(4, 40))
@example("\U000e0100", 4)
def test_pages_join_to_the_whole(session: CommandSession, text: str, size: int) -> None:
    OutputChunk.objects.all().delete()
    OutputGap.objects.all().delete()
    plain = "".join(char for char in text if char.isprintable() and visible(char) == char) or "x"
    end = _store(session, plain.encode())
    position, pages = 0, ""
    while position < end:
        page = view_page(session.id, position, end, size, is_final=True, view="text")
        assert page.next_offset > position
        position, pages = page.next_offset, pages + page.text
    assert pages == plain


def test_a_sequence_longer_than_a_page_does_not_stop_the_reader(session: CommandSession) -> None:
    end = _store(session, b"\x1b]52;c;" + b"A" * 3000 + b"\x07end")
    position = 0
    while position < end:
        page = view_page(session.id, position, end, 500, is_final=False, view="text")
        assert page.next_offset > position
        position = page.next_offset


def test_the_screen_is_rendered_from_the_end(session: CommandSession) -> None:
    end = _store(session, b"\x1b[?1049h\x1b[2J\x1b[2;3Hmenu")
    shown = view_screen(session.id, end, 3, 10)
    assert shown.text == "\n  menu\n"
    assert shown.cursor is not None
    assert (shown.cursor.row, shown.cursor.column) == (1, 6)


@pytest.mark.parametrize(("erased", "is_shown"), [(1, True), (600, False)])
def test_a_glance_is_not_taken_where_it_would_cost_much(
    session: CommandSession, erased: int, is_shown: bool
) -> None:
    end = _store(session, b"\x1b[?1049h" + b"\x1b[J" * erased + b"\x1b[1;1H> one")
    glance = glance_at_screen(
        session.id, end, rows=50, cols=200, signs=re.compile(">"), mask=secret_mask(session.id)
    )
    assert (glance is not None and glance.lines[0] == "> one") == is_shown
