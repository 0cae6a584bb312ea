"""A player gets an index of the whole recording, and all of its output in parts."""

import base64

import pytest

from controller_client.protocol.messages import HostTime, Stream
from projects.models import CommandSession
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import events, index, replay
from projects.output.recording.events import NewEvent
from projects.output.recording.index import replay_index
from projects.output.recording.replay import replay_part
from projects.secrets.masks import MASK, secret_remember
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


def _at(clock: float) -> HostTime:
    return HostTime(wall=1_763_850_000 + clock, clock=50 + clock)


def _recorded(*printed: tuple[Stream, bytes], secret: bytes | None = None) -> CommandSession:
    session = make_session(make_controller())
    if secret is not None:
        secret_remember(session.pk, secret)
    ends: dict[Stream, int] = {"stdout": 0, "stderr": 0}
    for seq, (stream, data) in enumerate(printed):
        output_log.append([NewChunk(session.pk, stream, ends[stream], seq, data, _at(seq * 10))])
        ends[stream] += len(data)
    CommandSession.objects.filter(pk=session.pk).update(
        stdout_next_offset=ends["stdout"], stderr_next_offset=ends["stderr"]
    )
    session.refresh_from_db()
    return session


def _played(session: CommandSession) -> tuple[bytes, int]:
    """All output as the player gets it, and the number of parts."""
    stdout: int | None = 0
    stderr: int | None = 0
    shown, count = b"", 0
    while stdout is not None and stderr is not None:
        part = replay_part(session, stdout, stderr)
        times = [piece[0] for piece in part.pieces]
        assert times == sorted(times)
        shown += b"".join(base64.b64decode(piece[1]) for piece in part.pieces)
        stdout, stderr, count = part.stdout, part.stderr, count + 1
    return shown, count


def test_the_parts_are_all_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PART_BYTES", 6)
    session = _recorded(*[("stdout", b"line %d\n" % number) for number in range(9)])
    assert _played(session) == (b"".join(b"line %d\n" % number for number in range(9)), 9)


def test_the_parts_of_both_pipes_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PART_CHUNKS", 2)
    session = _recorded(("stdout", b"ab"), ("stderr", b"!!"), ("stderr", b"??"), ("stdout", b"cd"))
    assert _played(session)[0] == b"ab!!??cd"


def test_a_secret_is_masked_where_parts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PART_CHUNKS", 1)
    pieces = [b"x corr", b"ect-h", b"orse y", b" and correct-horse"]
    session = _recorded(*[("stdout", piece) for piece in pieces], secret=b"correct-horse")
    shown, parts = _played(session)
    assert (shown.decode(), parts) == (f"x {MASK} y and {MASK}", 4)


def test_a_folded_secret_is_masked_where_parts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PART_CHUNKS", 1)
    pieces = [b"x corr", b"ect-\r", b"\n\x1b[", b"1Bhorse y"]
    session = _recorded(*[("stdout", piece) for piece in pieces], secret=b"correct-horse")
    shown, parts = _played(session)
    assert (shown.decode(), parts) == (f"x {MASK}\r\n\x1b[1B y", 4)


def test_the_index_has_the_beginning_the_places_and_the_markers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "_PLACE_BYTES", 1)
    session = _recorded(("stdout", b"Name: "), ("stdout", b"Ada\r\n"))
    asked = {"state": "awaiting_input", "kind": "line", "prompt": "Name: "}
    size = {"rows": 50, "cols": 132, "from_rows": 24, "from_cols": 120}
    events.append(
        [
            NewEvent(session.pk, "prompt", 6, detail=asked, at=_at(1)),
            NewEvent(session.pk, "resize", 6, "ada", size, _at(2)),
            NewEvent(session.pk, "prompt", 8, detail={"state": "running"}, at=_at(11)),
            NewEvent(session.pk, "end", 11, detail={"state": "EXITED", "exit_code": 0}, at=_at(12)),
        ]
    )
    found = replay_index(session)
    assert (found.began_at, found.seconds, found.is_host_time) == (1_763_850_000, 12, True)
    assert (found.rows, found.cols) == (24, 120)
    assert [(place.time, place.stdout) for place in found.places] == [(0, 0), (10, 6)]
    assert [(m.time, m.kind, m.label, m.rows) for m in found.markers] == [
        (1, "prompt", "prompt (line): Name:", None),
        (2, "resize", "132 columns, 50 rows", 50),
        (12, "end", "ended: exited, exit code 0", None),
    ]


def test_a_resize_comes_before_the_output_that_was_written_after_it() -> None:
    session = _recorded(("stdout", b"wide"), ("stdout", b"narrow"))
    size = {"rows": 50, "cols": 132, "from_rows": 24, "from_cols": 120}
    events.append([NewEvent(session.pk, "resize", at, "ada", size, _at(1)) for at in (2, 4, 10)])
    pieces = [
        base64.b64decode(piece[1]) if isinstance(piece[1], str) else piece[1:]
        for piece in replay_part(session, 0, 0).pieces
    ]
    size_then = (50, 132)
    assert pieces == [b"wi", size_then, b"de", size_then, b"narrow", size_then]
    assert replay_part(session, 4, 0).pieces[0][1:] == size_then


def test_a_session_without_output_has_an_empty_recording() -> None:
    session = _recorded()
    assert (replay_index(session).seconds, replay_index(session).places) == (0, [])
    assert _played(session) == (b"", 1)
