"""What was deleted of a recording is gone from rows, screens, search, replay and exports."""

import json
from base64 import b64decode
from collections.abc import Coroutine
from uuid import UUID

import pytest

from controller_client.protocol.messages import HostTime
from controller_client.protocol.session_state import SessionState
from projects.errors.calls import InvalidArgument
from projects.errors.sessions import SessionActive, SessionNotFound
from projects.models import (
    Approval,
    AuditEvent,
    CommandSession,
    OutputChunk,
    OutputGap,
    RecordingScreen,
    SessionEvent,
)
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import erasure, events, screens
from projects.output.recording.cast import cast
from projects.output.recording.events import NewEvent
from projects.output.recording.index import replay_index
from projects.output.recording.replay import replay_part
from projects.output.recording.screens import NewScreen, ScreenPlace
from projects.sessions.transactions.erasure import output_black_out, output_clear
from projects.storage.access import in_database
from projects.storage.shared import one_transaction
from projects.upkeep import retention
from tests.support.rows import make_approval, make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)
PRINTED = (b"Name: ", b"hunter2 is ", b"my secret", b" and more\r\n")


def _at(clock: float) -> HostTime:
    return HostTime(wall=1_763_850_000 + clock, clock=50 + clock)


def _recorded(state: SessionState = SessionState.EXITED, host: str = "host") -> CommandSession:
    """A session that printed a piece every 10 seconds, with a prompt and a screen after each."""
    session = make_session(
        make_controller(host), state, terminal_prompt="hunter2 is my secret", terminal_offset=26
    )
    end = 0
    for number, data in enumerate(PRINTED):
        at = _at(number * 10)
        output_log.append([NewChunk(session.pk, "stdout", end, number, data, at)])
        end += len(data)
        told = {"state": "awaiting_input", "kind": "line", "prompt": data.decode()}
        events.append([NewEvent(session.pk, "prompt", end, detail=told, at=at)])
        place = ScreenPlace(time=number * 10, stdout=end, stderr=0)
        screens.store(session.pk, screens.version(session.pk), [NewScreen(place, b"deflated")])
    make_approval(session.project, session_id=session.pk, prompt="line: hunter2 is my secret")
    CommandSession.objects.filter(pk=session.pk).update(stdout_next_offset=end)
    return CommandSession.objects.get(pk=session.pk)


def _all_text(session_id: UUID) -> str:
    """Everything that the database holds or a reader gets of the session."""
    session = CommandSession.objects.get(pk=session_id)
    chunks = [bytes(row.data) for row in OutputChunk.objects.filter(session=session)]
    told = list(SessionEvent.objects.filter(session=session).values_list("detail", flat=True))
    shown = [
        session.terminal_prompt,
        *Approval.objects.filter(session_id=session_id).values_list("prompt", flat=True),
        "".join(cast(session)),
        replay_index(session).model_dump_json(),
    ]
    played = [b64decode(str(piece[1])) for piece in replay_part(session, 0, 0).pieces]
    return json.dumps([*map(str, [*chunks, *played]), told, shown])


async def test_a_blacked_out_range_is_gone_and_says_so() -> None:
    session = await in_database(_recorded)
    about = (session.project_id, session.pk)
    assert "hunter2" in await in_database(_all_text, session.pk)
    gone = await output_black_out(*about, from_seconds=9.5, to_seconds=20.5, actor="user:ada")
    assert gone == len(PRINTED[1] + PRINTED[2])

    def look() -> None:
        text = _all_text(session.pk)
        assert "hunter2" not in text
        assert "secret" not in text
        assert "and more" in text
        assert "20 bytes are gone (blacked_out)" in text
        assert [m.kind for m in replay_index(session).markers].count("gap") == 1
        kept = RecordingScreen.objects.filter(session=session).values_list("stdout", flat=True)
        assert list(kept) == [6]
        row = AuditEvent.objects.get(action="session.black_out")
        assert (row.actor, row.session_id, row.detail["stdout"]) == (
            "user:ada",
            session.pk,
            [6, 26],
        )

    await in_database(look)


async def test_a_range_that_retention_took_meanwhile_makes_no_gap_in_a_gap() -> None:
    session = await in_database(_recorded)
    ranges = await in_database(erasure.ranges_between, session, 9.5, 20.5)
    await in_database(output_log.clear, session.pk)
    await in_database(one_transaction()(erasure.black_out), session.pk, ranges)
    gaps = OutputGap.objects.values_list("from_offset", "to_offset", "reason")
    assert await in_database(list, gaps) == [(0, 37, "retention")]


@pytest.mark.parametrize("part", ["all", "some"])
async def test_nothing_is_taken_away_without_its_audit_row(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_database(_recorded)
    about = (session.project_id, session.pk)

    def refuse(*_: object) -> None:
        raise InterruptedError

    with monkeypatch.context() as patched:
        patched.setattr("projects.sessions.transactions.erasure.audit", refuse)
        if part == "all":
            erased: Coroutine[None, None, object] = output_clear(*about, actor="user:ada")
        else:
            erased = output_black_out(*about, from_seconds=0, to_seconds=9, actor="user:ada")
        with pytest.raises(InterruptedError):
            await erased
    assert "Name" in await in_database(_all_text, session.pk)
    told = SessionEvent.objects.filter(session=session, kind="prompt", detail__prompt="")
    assert not await in_database(told.exists)
    assert not await in_database(OutputGap.objects.exists)


async def test_a_recording_is_deleted_once_by_a_person_or_by_retention() -> None:
    session = await in_database(_recorded)
    await output_clear(session.project_id, session.pk, actor="user:ada")
    assert not await in_database(retention._clear, session.pk)
    rows = AuditEvent.objects.filter(action="session.clear").values_list("actor", flat=True)
    assert await in_database(list, rows) == ["user:ada"]


async def test_ranges_that_touch_become_one_gap() -> None:
    session = await in_database(_recorded)
    for since in (10, 20):
        await output_black_out(
            session.project_id, session.pk, from_seconds=since, to_seconds=since, actor="user:ada"
        )
    gaps = OutputGap.objects.values_list("from_offset", "to_offset", "reason")
    assert await in_database(list, gaps) == [(6, 26, "blacked_out")]


async def test_a_deleted_recording_leaves_no_prompt_and_no_screen() -> None:
    session = await in_database(_recorded)
    await output_clear(session.project_id, session.pk, actor="user:ada")
    text = await in_database(_all_text, session.pk)
    assert "hunter2" not in text
    assert "Name" not in text
    assert not await in_database(RecordingScreen.objects.filter(session=session).exists)


async def test_a_deletion_that_was_cut_short_can_be_done_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = await in_database(_recorded)
    about = (session.project_id, session.pk)
    clear, batches = output_log.clear, iter([True, False])

    def cut_short(session_id: UUID) -> bool:
        if not next(batches):
            raise InterruptedError
        return clear(session_id)

    with monkeypatch.context() as patched:
        patched.setattr(output_log, "TRIM_CHUNKS_PER_TRANSACTION", 2)
        patched.setattr(output_log, "clear", cut_short)
        with pytest.raises(InterruptedError):
            await output_clear(*about, actor="user:ada")
    left = CommandSession.objects.filter(pk=session.pk, cleared_at__isnull=True)
    assert await in_database(left.exists)
    await output_clear(*about, actor="user:ada")
    assert not await in_database(left.exists)
    assert "more" not in await in_database(_all_text, session.pk)


async def test_what_cannot_be_blacked_out_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = await in_database(_recorded)
    active = await in_database(_recorded, SessionState.RUNNING, "other")
    whole = {"from_seconds": 0.0, "to_seconds": 99.0, "actor": "user:ada"}
    with pytest.raises(SessionActive):
        await output_black_out(active.project_id, active.pk, **whole)
    with pytest.raises(SessionNotFound):
        await output_black_out(active.project_id, ended.pk, **whole)
    with pytest.raises(InvalidArgument, match="nothing was printed"):
        await output_black_out(
            ended.project_id, ended.pk, from_seconds=41, to_seconds=50, actor="user:ada"
        )
    monkeypatch.setattr(erasure, "MAX_BYTES", 20)
    with pytest.raises(InvalidArgument, match="too much"):
        await output_black_out(ended.project_id, ended.pk, **whole)
    assert "hunter2" in await in_database(_all_text, ended.pk)
    assert not await in_database(AuditEvent.objects.filter(action="session.black_out").exists)
