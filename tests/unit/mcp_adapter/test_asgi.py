"""``/mcp`` before and around the protocol: who is let in, by which name, with which method."""

import json
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from mcp_adapter import asgi
from projects.accounts import call_places, token_check
from projects.accounts.authentication import AGENT_SCOPES
from projects.accounts.call_places import place
from projects.accounts.credentials import api_token_create
from projects.accounts.tokens import shown_token
from projects.conf import conf
from projects.errors.shown_tools import tools_named
from projects.models import Controller, Project
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import Answer, call, message, modern, request, result_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Basic abc",
        f"Bearer hl_{'0' * 16}_{'A' * 43}",
        f"Bearer ctl_{'0' * 16}_{'A' * 43}",
    ],
)
async def test_nobody_gets_in_without_a_valid_token(header: str | None) -> None:
    body, headers = modern("list_controllers")
    answer = await request(body, headers={**headers, "authorization": header or ""})
    assert (answer.status, answer.json["error"]["data"]["code"]) == (401, "UNAUTHENTICATED")
    assert answer.json["error"]["message"].endswith(answer.json["error"]["data"]["hint"])
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("host_header", "status"),
    [("evil.example", 421), ("localhost.evil.example:8000", 421), ("", 421), ("127.0.0.1:9", 200)],
)
async def test_only_our_own_names_are_served(
    bearer: dict[str, str], host_header: str, status: int
) -> None:
    body, headers = modern("list_controllers")
    assert (
        await request(body, headers={**bearer, **headers, "host": host_header})
    ).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://localhost:9999", 403),
        ("http://localhost:8000", 200),
        ("https://tools.example", 200),
    ],
)
async def test_a_page_of_another_origin_is_refused(
    bearer: dict[str, str], origin: str, status: int, settings: Any
) -> None:
    settings.ALLOWED_ORIGINS = ["https://tools.example"]
    body, headers = modern("list_controllers")
    assert (await request(body, headers={**bearer, **headers, "origin": origin})).status == status


async def test_a_browser_may_ask_first_for_a_page_of_an_allowed_origin_only(settings: Any) -> None:
    settings.ALLOWED_ORIGINS = ["https://tools.example"]
    asked = (
        "authorization, content-type,mcp-protocol-version, Mcp-Session-Id, mcp-param-x, "
        "cookie, x-evil, mcp-\u00fc, mcp- x"
    )
    preflight = {"access-control-request-method": "POST", "access-control-request-headers": asked}
    answer = await request(
        method="OPTIONS", headers={**preflight, "origin": "https://tools.example"}
    )
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "https://tools.example"
    granted = answer.headers["access-control-allow-headers"].split(", ")
    assert granted == [
        "authorization",
        "content-type",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-param-x",
        "mcp-x",
    ]
    assert (answer.headers["access-control-allow-methods"], answer.headers["vary"]) == (
        "POST",
        "Origin",
    )
    assert "access-control-allow-credentials" not in answer.headers
    for origin, status in {"https://evil.example": 403, "http://localhost:8000": 405}.items():
        refused = await request(method="OPTIONS", headers={**preflight, "origin": origin})
        assert refused.status == status
        assert not [name for name in refused.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/mcp", "/.well-known/oauth-protected-resource"])
async def test_a_page_of_an_allowed_origin_may_read_answers_and_refusals(
    bearer: dict[str, str], settings: Any, path: str
) -> None:
    settings.ALLOWED_ORIGINS = ["https://tools.example"]
    body, headers = modern("list_controllers")
    for shown in ({}, bearer):
        answer = await request(
            body, headers={**shown, **headers, "origin": "https://tools.example"}, path=path
        )
        assert answer.headers["access-control-allow-origin"] == "https://tools.example"
        assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"]
        assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]
    unasked = await request(body, headers={**bearer, **headers}, path=path)
    assert not [name for name in unasked.headers if name.startswith("access-control")]


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT"])
async def test_only_post_is_served_and_the_rest_is_told_so_at_once(method: str) -> None:
    answer = await request(method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("accept", ["text/html", "application/json", "text/event-stream"])
@pytest.mark.parametrize("is_modern", [True, False])
async def test_a_client_that_cannot_read_both_forms_of_an_answer_is_refused(
    bearer: dict[str, str], accept: str, is_modern: bool
) -> None:
    body, headers = modern("list_controllers") if is_modern else (message("tools/list"), {})
    answer = await request(body, headers={**bearer, **headers, "accept": accept})
    assert answer.status == 406


async def test_a_body_that_is_not_json_or_too_long_is_refused(bearer: dict[str, str]) -> None:
    body, headers = modern("list_controllers")
    assert (
        await request(body, headers={**bearer, **headers, "content-type": "text/plain"})
    ).status == 400
    assert (
        await request({"x": "y" * conf.data_upload_max_memory_size}, headers={**bearer, **headers})
    ).status == 413


@pytest.mark.parametrize("is_remembered", [False, True])
async def test_without_a_database_nobody_gets_in_unchecked(
    bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch, is_remembered: bool
) -> None:
    if is_remembered:
        assert (await call(bearer, "list_controllers")).status == 200

    def unavailable(_token: object, _meter: str) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(token_check, "find_caller", unavailable)
    answer = await call(bearer, "list_controllers")
    assert answer.json["error"]["data"]["code"] == "STORAGE_UNAVAILABLE"
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")


async def test_who_has_too_many_calls_is_refused_before_anything_is_built(
    bearer: dict[str, str], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.MAX_CALLS_PER_TOKEN = 1
    monkeypatch.setattr(call_places, "IN_LINE_PER_PLACE", 0)
    built: list[object] = []
    monkeypatch.setattr(asgi, "StreamableHTTPSessionManager", lambda **given: built.append(given))
    monkeypatch.setattr(asgi, "TokenCheck", lambda *given: built.append(given))
    async with place(shown_token(bearer["authorization"])):
        # The same token however it is written.
        for written in (
            bearer["authorization"],
            bearer["authorization"].replace("Bearer ", "bearer   "),
        ):
            answer = await call({"authorization": written}, "list_controllers")
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            assert answer.json["error"]["data"]["code"] == "RATE_LIMITED"
    assert built == []
    assert shown_token(bearer["authorization"]) not in call_places._lines


async def test_a_result_is_structured_and_the_same_as_text(
    bearer: dict[str, str], host: ActingHost
) -> None:
    result = (await call(bearer, "start_interactive_command", {"command": "greet"})).json["result"]
    assert (result["isError"], result["structuredContent"]["output"]) == (False, "Name: ")
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


async def test_an_error_has_no_structured_content(bearer: dict[str, str]) -> None:
    result = (await call(bearer, "get_session", {"session_id": str(uuid4())})).json["result"]
    assert result["isError"]
    assert result.get("structuredContent") is None
    assert json.loads(result["content"][0]["text"]) == result["_meta"]["holdline/error"]
    assert result["_meta"]["holdline/error"]["code"] == "SESSION_NOT_FOUND"


async def test_an_unknown_tool_is_a_protocol_error(bearer: dict[str, str]) -> None:
    assert (await call(bearer, "no_such_tool")).json["error"]["code"] == -32602


async def _listed(bearer: dict[str, str], query: str = "") -> Answer:
    body, headers = message("tools/list")
    return await request(body, headers={**bearer, **headers}, query=query)


async def test_the_address_narrows_the_list_and_what_can_be_called(bearer: dict[str, str]) -> None:
    assert len((await _listed(bearer)).json["result"]["tools"]) > 10
    names = [
        tool["name"] for tool in (await _listed(bearer, "toolsets=agent")).json["result"]["tools"]
    ]
    assert names == [
        "execute_command",
        "start_interactive_command",
        "send_command_input",
        "read_session_output",
        "list_sessions",
        "list_controllers",
    ]
    body, headers = modern("get_session", {"session_id": str(uuid4())})
    refused = await request(body, headers={**bearer, **headers}, query="toolsets=agent,jobs")
    assert refused.json["error"]["code"] == -32602
    assert "run_command" in refused.json["error"]["message"]
    assert (
        "result"
        in (
            await request(
                body, headers={**bearer, **headers}, query="toolsets=agent&toolsets=sessions"
            )
        ).json
    )


async def test_instructions_and_hints_name_only_tools_of_the_address(
    bearer: dict[str, str],
) -> None:
    listed = {
        tool["name"] for tool in (await _listed(bearer, "toolsets=agent")).json["result"]["tools"]
    }
    body, headers = message("server/discover")
    told = await request(body, headers={**bearer, **headers}, query="toolsets=agent")
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    begun = await request(initialize, headers=bearer, query="toolsets=agent")
    for text in (told.json["result"]["instructions"], begun.body.decode()):
        assert "execute_command" in text
        assert tools_named(text) <= listed
    body, headers = modern("execute_command", {"command": "ls", "controller": "nowhere"})
    answer = await request(body, headers={**bearer, **headers}, query="toolsets=oneshot")
    error = answer.json["result"]["_meta"]["holdline/error"]
    assert (error["code"], tools_named(error["hint"])) == ("CONTROLLER_NOT_FOUND", frozenset())
    assert "Hosts: " in error["hint"]


async def test_an_unknown_toolset_is_an_error_that_names_those_that_exist(
    bearer: dict[str, str],
) -> None:
    refused = await _listed(bearer, "toolsets=everything")
    assert (refused.status, refused.json["error"]["data"]["code"]) == (400, "UNKNOWN_TOOLSET")
    assert "interactive" in refused.json["error"]["message"]
    assert (await _listed({}, "toolsets=everything")).status == 401


async def test_a_token_s_own_set_narrows_what_its_callers_see(controller: Controller) -> None:
    project = await in_database(Project.objects.get, id=controller.project_id)
    _, token = await in_database(
        lambda: api_token_create(
            project=project, name="small", toolsets=("oneshot",), scopes=AGENT_SCOPES
        )
    )
    _, reading = await in_database(
        lambda: api_token_create(project=project, name="reading", scopes=("session:read",))
    )
    small = await _listed({"authorization": f"Bearer {token}"})
    assert [tool["name"] for tool in small.json["result"]["tools"]] == ["execute_command"]
    names = {
        tool["name"]
        for tool in (await _listed({"authorization": f"Bearer {reading}"})).json["result"]["tools"]
    }
    assert "read_session_output" in names
    assert "start_interactive_command" not in names


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", "null", "7", "true"])
async def test_text_that_looks_like_json_is_typed_as_it_is(
    bearer: dict[str, str], host: ActingHost, text: str
) -> None:
    started = await result_of(bearer, "start_interactive_command", {"command": "cat"})
    await call(
        bearer, "send_command_input", {"session_id": started["session_id"], "input_text": text}
    )
    assert getattr(host.commands[-1], "data", None) == text.encode()
