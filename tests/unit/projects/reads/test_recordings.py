"""Recordings for callers: only of their project, with the scope, complete, masked and audited."""

import base64
import json
import sys
from io import BytesIO, TextIOWrapper
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import AsyncClient
from django.utils import timezone

from controller_client.protocol.messages import HostTime
from projects import services
from projects.accounts.credentials import api_token_create
from projects.errors.access import Unauthenticated
from projects.errors.sessions import SessionNotFound
from projects.models import ApiToken, AuditEvent, CommandSession, Project
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import events
from projects.output.recording.events import NewEvent
from projects.reads import recordings, streamed
from projects.secrets.masks import MASK, secret_remember
from projects.storage.access import in_database
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

SHOWN = b"\x1b[1mName\x1b[0m: \xff\r\n"


@pytest.fixture
def session() -> CommandSession:
    made = make_session(make_controller(), stdout_next_offset=len(SHOWN) + 4)
    at = HostTime(wall=1_763_850_000.0, clock=7.0)
    output_log.append([NewChunk(made.pk, "stdout", 0, 1, SHOWN, at)])
    output_log.append([NewChunk(made.pk, "stdout", len(SHOWN), 2, b"done", None)])
    detail = {"state": "awaiting_input", "kind": "line", "prompt": "Name: correct-horse"}
    events.append([NewEvent(made.pk, "prompt", 6, detail=detail, at=at)])
    secret_remember(made.pk, b"correct-horse")
    return made


def _token(project: Project, *scopes: str) -> str:
    _, shown = api_token_create(project=project, name=f"t{uuid4()}", scopes=list(scopes))
    return shown


def _get(path: str, token: str = "") -> tuple[int, bytes, Any]:
    async def get() -> tuple[int, bytes, Any]:
        answer = await AsyncClient().get(path, headers={"Authorization": f"Bearer {token}"})
        if answer.streaming:
            body = b"".join([part async for part in answer.streaming_content])
        else:
            body = answer.content
        return answer.status_code, body, answer.headers

    return async_to_sync(get)()


def test_events_and_chunks_are_read_with_their_times_and_masked(session: CommandSession) -> None:
    project_id = session.project_id
    (event,) = async_to_sync(services.session_events)(project_id, session.pk)
    assert (event.seq, event.kind, event.offset, event.host_clock) == (1, "prompt", 6, 7.0)
    assert event.detail["prompt"] == f"Name: {MASK}"
    assert async_to_sync(services.session_events)(project_id, session.pk, after_seq=1) == []
    found = async_to_sync(services.session_chunks)(project_id, session.pk, offset=3)
    assert [(c.offset, c.host_clock) for c in found] == [(0, 7.0), (len(SHOWN), None)]
    assert base64.b64decode(found[0].data_base64) == SHOWN
    with pytest.raises(SessionNotFound):
        async_to_sync(services.session_events)(uuid4(), session.pk)
    with pytest.raises(SessionNotFound):
        async_to_sync(services.session_chunks)(uuid4(), session.pk)


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        ("cast", "application/x-asciicast"),
        ("text", "text/plain; charset=utf-8"),
        ("raw", "application/octet-stream"),
    ],
)
def test_a_token_gets_each_format_and_that_is_audited(
    session: CommandSession, wanted: str, kind: str
) -> None:
    token = _token(session.project, "session:read")
    status, body, headers = _get(f"/recordings/{session.pk}?format={wanted}", token)
    assert (status, headers["Content-Type"], headers["Cache-Control"]) == (200, kind, "no-store")
    if wanted == "cast":
        lines = [json.loads(line) for line in body.decode().splitlines()]
        text = "".join(line[2] for line in lines[1:] if line[1] == "o")
        assert text == (SHOWN + b"done").decode(errors="replace")
    elif wanted == "text":
        assert body.decode() == "Name: \ufffd\ndone"
    else:
        assert body == SHOWN + b"done"
    row = AuditEvent.objects.filter(action="transcript.download").get()
    assert (row.session_id, row.detail) == (session.pk, {"format": wanted})


async def test_a_download_ends_with_its_token(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(recordings, "_BATCH_LINES", 1)
    token = await in_database(lambda: _token(session.project, "session:read"))
    headers = {"Authorization": f"Bearer {token}"}
    answer: Any = await AsyncClient().get(f"/recordings/{session.pk}", headers=headers)
    parts = aiter(answer.streaming_content)
    assert b'"version":3' in await anext(parts)
    await in_database(ApiToken.objects.update, revoked_at=timezone.now())
    with pytest.raises(Unauthenticated):
        await anext(parts)


def test_a_secret_that_is_drawn_over_two_pages_of_the_text_is_masked(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = "".join(f"\x1b[1m{char}" for char in "correct-horse").encode()
    end = session.stdout_next_offset
    output_log.append([NewChunk(session.pk, "stdout", end, 3, drawn)])
    CommandSession.objects.filter(pk=session.pk).update(stdout_next_offset=end + len(drawn))
    monkeypatch.setattr(recordings, "_PAGE_BYTES", end + len(drawn) // 2)
    token = _token(session.project, "session:read")
    _, body, _ = _get(f"/recordings/{session.pk}?format=text", token)
    assert body.decode() == f"Name: \ufffd\ndone{MASK}"


def test_a_recording_is_for_tokens_of_the_project_that_may_read(session: CommandSession) -> None:
    path = f"/recordings/{session.pk}"
    other = Project.objects.create(name="other")
    assert _get(path)[0] == 401
    assert _get(path, _token(session.project, "session:start"))[0] == 403
    assert _get(path, _token(other, "session:read"))[0] == 404
    token = _token(session.project, "session:read")
    assert _get(f"{path}?format=mp4", token)[0] == 400
    assert not AuditEvent.objects.filter(action="transcript.download").exists()


def test_the_command_writes_what_the_address_answers(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", TextIOWrapper(written, write_through=True))
    call_command("export_recording", str(session.pk), "--format", "raw")
    assert written.getvalue() == SHOWN + b"done"
    row = AuditEvent.objects.filter(action="transcript.download").get()
    assert row.actor.startswith("cli:")
    with pytest.raises(CommandError, match="SESSION_NOT_FOUND"):
        call_command("export_recording", str(uuid4()))


def test_a_long_text_is_exported_page_by_page(session: CommandSession) -> None:
    from projects.reads import recordings

    line = "Zeile mit Umlaut ä und mehr\n".encode()
    count = recordings._PAGE_BYTES // len(line) * 3
    end = session.stdout_next_offset
    for number in range(3):
        data = line * (count // 3)
        output_log.append([NewChunk(session.pk, "stdout", end, 3 + number, data)])
        end += len(data)
    session.stdout_next_offset = end
    exported = list(recordings.export_pieces(session, "text"))
    assert len(exported) >= 3
    assert b"".join(exported).decode() == "Name: \ufffd\ndone" + line.decode() * (count // 3 * 3)
