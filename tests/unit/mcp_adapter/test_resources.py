"""Transcripts of sessions as resources: of the caller's project, to callers who may read."""

from typing import Any
from uuid import uuid4

import pytest

from mcp_adapter import resources
from projects.accounts.credentials import api_token_create
from projects.models import Controller, Project
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import message, modern, request
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


async def _ask(bearer: dict[str, str], method: str, **params: Any) -> dict[str, Any]:
    body, headers = message(method, params)
    answer: dict[str, Any] = (await request(body, headers={**bearer, **headers})).json
    return answer


async def test_a_session_is_listed_and_its_transcript_can_be_read(
    bearer: dict[str, str], host: ActingHost
) -> None:
    body, headers = modern("start_interactive_command", {"command": "greet"})
    started = (await request(body, headers={**bearer, **headers})).json["result"][
        "structuredContent"
    ]
    listed = (await _ask(bearer, "resources/list"))["result"]["resources"]
    uri = f"holdline://session/{started['session_id']}/transcript"
    assert [(resource["uri"], resource["title"], resource["mimeType"]) for resource in listed] == [
        (uri, "greet", "text/plain")
    ]
    contents = (await _ask(bearer, "resources/read", uri=uri))["result"]["contents"]
    assert contents == [{"uri": uri, "mimeType": "text/plain", "text": "Name: "}]


async def test_of_a_long_transcript_the_newest_part_is_shown(
    bearer: dict[str, str], host: ActingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "MAX_OUTPUT_BYTES", 300)
    body, headers = modern("start_interactive_command", {"command": "greet"})
    session_id = (await request(body, headers={**bearer, **headers})).json["result"][
        "structuredContent"
    ]["session_id"]
    await host.say(host.output(session_id, b"x" * 400 + b"the end", is_waiting=True))
    uri = f"holdline://session/{session_id}/transcript"
    (content,) = (await _ask(bearer, "resources/read", uri=uri))["result"]["contents"]
    assert (
        content["text"] == f"[{len('Name: ') + 407 - 300} bytes before]\n" + "x" * 293 + "the end"
    )


async def test_sessions_are_listed_by_pages(
    bearer: dict[str, str], controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "PAGE_SESSIONS", 2)
    for number in range(3):
        await in_database(make_session, controller, command=f"program {number}")
    first = (await _ask(bearer, "resources/list"))["result"]
    rest = (await _ask(bearer, "resources/list", cursor=first["nextCursor"]))["result"]
    assert [resource["title"] for resource in first["resources"] + rest["resources"]] == [
        "program 2",
        "program 1",
        "program 0",
    ]
    assert "nextCursor" not in rest
    for cursor in ("2026-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        assert (await _ask(bearer, "resources/list", cursor=cursor))["error"]["code"] == -32602


async def test_the_template_names_the_form_of_the_address(bearer: dict[str, str]) -> None:
    (template,) = (await _ask(bearer, "resources/templates/list"))["result"]["resourceTemplates"]
    assert template["uriTemplate"] == "holdline://session/{session_id}/transcript"


async def test_another_project_s_session_does_not_exist(
    bearer: dict[str, str], controller: Controller
) -> None:
    session = await in_database(make_session, controller)
    other = await in_database(Project.objects.create, name="other")
    _, token = await in_database(lambda: api_token_create(project=other, name="x"))
    stranger = {"authorization": f"Bearer {token}"}
    assert (await _ask(stranger, "resources/list"))["result"]["resources"] == []
    theirs = await _ask(
        stranger, "resources/read", uri=f"holdline://session/{session.id}/transcript"
    )
    absent = await _ask(stranger, "resources/read", uri=f"holdline://session/{uuid4()}/transcript")
    assert theirs["error"]["code"] == absent["error"]["code"] == -32602
    assert theirs["error"]["data"]["code"] == absent["error"]["data"]["code"] == "SESSION_NOT_FOUND"


async def test_without_the_scope_to_read_there_is_nothing_to_see(controller: Controller) -> None:
    session = await in_database(make_session, controller)
    project = await in_database(Project.objects.get, id=controller.project_id)
    _, token = await in_database(
        lambda: api_token_create(project=project, name="x", scopes=("session:start",))
    )
    blind = {"authorization": f"Bearer {token}"}
    assert (await _ask(blind, "resources/list"))["result"]["resources"] == []
    refused = await _ask(blind, "resources/read", uri=f"holdline://session/{session.id}/transcript")
    assert refused["error"]["data"]["code"] == "SCOPE_MISSING"


@pytest.mark.parametrize(
    "uri",
    ["file:///etc/passwd", "holdline://session/x/transcript", "holdline://session/../transcript"],
)
async def test_any_other_address_is_refused(bearer: dict[str, str], uri: str) -> None:
    error = (await _ask(bearer, "resources/read", uri=uri))["error"]
    assert (error["code"], error["data"]["uri"]) == (-32602, uri)
