"""A cast has the text of the ledger, the times of the host, markers, sizes, gaps and the end."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_client.protocol.messages import HostTime, Stream
from projects.models import CommandSession, OutputChunk, SessionEvent
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import events, rows
from projects.output.recording.cast import Line, cast, masked
from projects.output.recording.events import NewEvent
from projects.secrets.masks import MASK, SecretMask, secret_remember
from tests.support.rows import make_controller, make_session
from tests.support.running.property_settings import STEADY

pytestmark = pytest.mark.django_db

BEGAN = 1_763_850_000.0


def _at(clock: float) -> HostTime:
    return HostTime(wall=BEGAN + clock, clock=100 + clock)


def _session(**fields: Any) -> CommandSession:
    return make_session(make_controller(), rows=24, cols=80, **fields)


def _print(session: CommandSession, *pieces: tuple[bytes, HostTime | None]) -> None:
    for data, at in pieces:
        offset, seq = session.stdout_next_offset, session.last_chunk_seq + 1
        output_log.append([NewChunk(session.pk, "stdout", offset, seq, data, at)])
        session.stdout_next_offset, session.last_chunk_seq = offset + len(data), seq
        session.save()


def _cast(session: CommandSession) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    """The header, and the lines with the time since the beginning in place of the interval."""
    header, *lines = map(json.loads, cast(session))
    time, found = 0.0, []
    for interval, code, text in lines:
        assert interval >= 0
        time = round(time + interval, 3)
        found.append((time, code, text))
    return header, found


def _text(lines: list[tuple[float, str, str]]) -> str:
    return "".join(text for _, code, text in lines if code == "o")


def test_output_has_the_times_of_its_host_whenever_it_came() -> None:
    session = _session()
    _print(session, (b"one\r\n", _at(0)), (b"two\r\n", _at(1.5)), (b"three", _at(31.25)))
    header, lines = _cast(session)
    assert lines == [(0, "o", "one\r\n"), (1.5, "o", "two\r\n"), (31.25, "o", "three")]
    assert header["version"] == 3
    assert header["term"] == {"cols": 80, "rows": 24}
    assert (header["timestamp"], "host times" in header["tags"]) == (int(BEGAN), True)


def test_a_clock_that_is_set_back_does_not_move_the_output() -> None:
    session = _session()
    back = HostTime(wall=BEGAN - 3600, clock=102.0)
    _print(session, (b"a", _at(0)), (b"b", back), (b"c", _at(3)))
    assert [time for time, _, _ in _cast(session)[1]] == [0, 2, 3]


def test_sessions_of_older_daemons_have_the_server_s_times() -> None:
    session = _session()
    _print(session, (b"a", None), (b"b", None))
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for seconds, chunk in enumerate(OutputChunk.objects.order_by("seq")):
        chunk.created_at = began + timedelta(seconds=seconds * 7)
        chunk.save()
    header, lines = _cast(session)
    assert lines == [(0, "o", "a"), (7, "o", "b")]
    assert "server times" in header["tags"]


def test_prompts_inputs_and_operators_are_markers_where_they_were() -> None:
    session = _session()
    _print(session, (b"Name: ", _at(0)), (b"Ada\r\nHello\r\n", _at(4)))
    asked = {"state": "awaiting_input", "kind": "line", "evidence": "kernel", "prompt": "Name: "}
    events.append(
        [
            NewEvent(session.pk, "prompt", 6, detail=asked, at=_at(0.25)),
            NewEvent(session.pk, "take_over", 6, "ada"),
            NewEvent(session.pk, "input", 6, "ada", {"hidden": True}, _at(3)),
            NewEvent(session.pk, "prompt", 9, detail={"state": "running"}, at=_at(4.1)),
            NewEvent(session.pk, "hand_back", 18, "ada", {"note": "done"}),
            NewEvent(session.pk, "end", 18, "controller:a", {"exit_code": 3}, _at(9)),
        ]
    )
    # The host's news took a tenth of a second; the operator was seen by the server alone.
    for row in (*OutputChunk.objects.all(), *SessionEvent.objects.filter(host_time__isnull=False)):
        row.created_at = row.host_time + timedelta(seconds=0.1)
        row.save()
    for kind, clock in (("take_over", 2.1), ("hand_back", 6.1)):
        stored_at = datetime.fromtimestamp(BEGAN + clock, UTC)
        SessionEvent.objects.filter(kind=kind).update(created_at=stored_at)
    _, lines = _cast(session)
    assert [(code, text) for _, code, text in lines] == [
        ("o", "Name: "),
        ("m", "prompt (line): Name:"),
        ("m", "ada took over"),
        ("m", "input by ada (hidden)"),
        ("o", "Ada"),
        ("o", "\r\nHello\r\n"),
        ("m", "ada handed back: done"),
        ("x", "3"),
    ]
    assert [time for time, _, _ in lines] == [0, 0.25, 2, 3, 4, 4.1, 6, 9]


def test_the_size_is_that_of_the_beginning_and_each_change_a_line() -> None:
    session = _session()
    session.rows, session.cols = 50, 132
    _print(session, (b"a", _at(0)), (b"b", _at(2)))
    size = {"rows": 50, "cols": 132, "from_rows": 24, "from_cols": 80}
    events.append([NewEvent(session.pk, "resize", 1, "token:a", size, _at(1))])
    header, lines = _cast(session)
    assert header["term"] == {"cols": 80, "rows": 24}
    assert lines == [(0, "o", "a"), (1, "r", "132x50"), (2, "o", "b")]


def test_a_gap_is_a_marker_with_its_size() -> None:
    session = _session()
    _print(session, (b"\xe2\x82", _at(0)))
    output_log.add_gap(session.pk, "stdout", 2, 1002, "ring_overflow")
    session.stdout_next_offset = 1002
    _print(session, (b"\xace", _at(5)))
    output_log.add_gap(session.pk, "stdout", 1004, 1010, "lost")
    session.stdout_next_offset = 1010
    _, lines = _cast(session)
    assert [(code, text) for _, code, text in lines] == [
        ("o", "\ufffd"),
        ("m", "gap: 1000 bytes are gone (ring_overflow)"),
        ("o", "\ufffde"),
        ("m", "gap: 6 bytes are gone (lost)"),
    ]


@pytest.mark.parametrize(
    ("detail", "status"), [({"exit_code": 0}, "0"), ({"signal": "SIGKILL"}, "137"), ({}, None)]
)
def test_the_end_is_an_exit_status_if_there_is_one(
    detail: dict[str, object], status: str | None
) -> None:
    session = _session()
    events.append([NewEvent(session.pk, "end", detail=detail)])
    assert [text for _, code, text in _cast(session)[1] if code == "x"] == (
        [status] if status else []
    )


@settings(parent=STEADY, max_examples=30)
@given(st.lists(st.binary(min_size=1, max_size=5), max_size=12), st.integers(0, 60))
def test_the_text_of_a_cast_is_that_of_the_ledger(pieces: list[bytes], event_at: int) -> None:
    session = make_session(make_controller(f"host-{CommandSession.objects.count()}"))
    _print(session, *((data, _at(number)) for number, data in enumerate(pieces)))
    events.append([NewEvent(session.pk, "input", event_at, "a", {}, _at(1))])
    whole = b"".join(pieces)
    assert _text(_cast(session)[1]) == whole.decode("utf-8", "replace")


def test_long_recordings_are_read_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "CHUNKS_PER_PAGE", 3)
    monkeypatch.setattr(rows, "EVENTS_PER_PAGE", 2)
    session = _session()
    _print(session, *((b"%d " % number, _at(number)) for number in range(10)))
    events.append([NewEvent(session.pk, "input", 2 * n, "a", {}, _at(n)) for n in range(7)])
    _, lines = _cast(session)
    assert _text(lines) == "0 1 2 3 4 5 6 7 8 9 "
    assert [code for _, code, _ in lines].count("m") == SessionEvent.objects.count() == 7


def test_both_pipes_come_in_the_order_in_which_they_were_printed() -> None:
    session = _session(stdout_next_offset=4, stderr_next_offset=2)
    printed: list[tuple[Stream, int, bytes]] = [
        ("stdout", 0, b"ab"),
        ("stderr", 0, b"!!"),
        ("stdout", 2, b"cd"),
    ]
    output_log.append(
        [
            NewChunk(session.pk, stream, offset, seq, data, _at(seq))
            for seq, (stream, offset, data) in enumerate(printed)
        ]
    )
    assert [text for _, _, text in _cast(session)[1]] == ["ab", "!!", "cd"]


def test_secrets_are_masked_also_across_lines_and_in_markers() -> None:
    session = _session()
    secret_remember(session.pk, b"correct-horse")
    session.refresh_from_db()
    asked = {"state": "awaiting_input", "kind": "line", "prompt": "correct-horse? "}
    _print(session, (b"x correct-", _at(0)), (b"ho", _at(1)), (b"rse y", _at(2)))
    events.append([NewEvent(session.pk, "prompt", 17, detail=asked, at=_at(3))])
    _, lines = _cast(session)
    assert lines == [
        (0, "o", f"x {MASK}"),
        (2, "o", " y"),
        (3, "m", f"prompt (line): {MASK}?"),
    ]


def test_a_secret_is_masked_wherever_held_lines_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("projects.output.recording.cast._HELD_CHARS", 5)
    mask = SecretMask(re.compile("abcdef"))
    whole = "12abcdef345abcdefabcdef6789" * 3
    for width in range(1, 9):
        lines: list[Line] = [
            (0.0, "o", whole[start : start + width]) for start in range(0, len(whole), width)
        ]
        shown = "".join(text for _, _, text in masked(lines, mask))
        assert shown == whole.replace("abcdef", MASK)


@pytest.mark.parametrize(
    "between",
    [
        "\r\n",
        " \r",
        "\n",
        "\x1b[5;1H",
        "\x1b[0m\r\x1b[1B\x1b[1m",
        "\x1b]0;title\x07",
        "\b",
        "\x1b(B",
    ],
)
@pytest.mark.parametrize("places", [{7}, {3, 9}, set(range(1, 13))])
def test_a_secret_that_is_folded_or_drawn_is_masked(between: str, places: set[int]) -> None:
    session = _session()
    secret_remember(session.pk, b"correct-horse")
    session.refresh_from_db()
    pieces = [f"{between if at in places else ''}{one}" for at, one in enumerate("correct-horse")]
    whole = f"\x1b[1mx {''.join(pieces)} y\r\n"
    shown = f"\x1b[1mx {MASK}{between * len(places)} y\r\n"
    _print(session, *[(one.encode(), _at(place)) for place, one in enumerate(whole)])
    assert _text(_cast(session)[1]) == shown


def test_a_secret_within_a_sequence_is_masked_as_well() -> None:
    session = _session()
    secret_remember(session.pk, b"correct horse")
    session.refresh_from_db()
    printed = b"\x1b]0;correct horse\x07 \x1bcorrect horse; correct \r\nhorse; horse\r\n"
    _print(session, (printed, _at(0)))
    shown = f"\x1b]0;{MASK}\x07 \x1b{MASK}; {MASK}\r\n; horse\r\n"
    assert _text(_cast(session)[1]) == shown
