"""``/mcp`` before and around the protocol: who is let in, by which name, with which method; calls
that are cut off.
"""

import asyncio
import json
import threading
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
from projects.wakeups.bus import exchange
from projects.wakeups.doorbells import session_group
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import META, Answer, message, modern, request
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


async def _call(
    bearer: dict[str, str], tool: str, arguments: dict[str, Any] | None = None
) -> Answer:
    body, headers = modern(tool, arguments)
    return await request(body, headers={**bearer, **headers})


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
        assert (await _call(bearer, "list_controllers")).status == 200

    def unavailable(_token: object, _meter: str) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(token_check, "find_caller", unavailable)
    answer = await _call(bearer, "list_controllers")
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
            answer = await _call({"authorization": written}, "list_controllers")
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            assert answer.json["error"]["data"]["code"] == "RATE_LIMITED"
    assert built == []
    assert shown_token(bearer["authorization"]) not in call_places._lines


async def test_a_result_is_structured_and_the_same_as_text(
    bearer: dict[str, str], host: ActingHost
) -> None:
    result = (await _call(bearer, "start_interactive_command", {"command": "greet"})).json["result"]
    assert (result["isError"], result["structuredContent"]["output"]) == (False, "Name: ")
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


async def test_an_error_has_no_structured_content(bearer: dict[str, str]) -> None:
    result = (await _call(bearer, "get_session", {"session_id": str(uuid4())})).json["result"]
    assert result["isError"]
    assert result.get("structuredContent") is None
    assert json.loads(result["content"][0]["text"]) == result["_meta"]["holdline/error"]
    assert result["_meta"]["holdline/error"]["code"] == "SESSION_NOT_FOUND"


async def test_an_unknown_tool_is_a_protocol_error(bearer: dict[str, str]) -> None:
    assert (await _call(bearer, "no_such_tool")).json["error"]["code"] == -32602


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
    started = (await _call(bearer, "start_interactive_command", {"command": "cat"})).json["result"][
        "structuredContent"
    ]
    await _call(
        bearer, "send_command_input", {"session_id": started["session_id"], "input_text": text}
    )
    assert getattr(host.commands[-1], "data", None) == text.encode()


async def test_the_era_of_initialize_is_served_as_a_stream_that_opens_at_once(
    bearer: dict[str, str], host: ActingHost
) -> None:
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    answer = await request(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}, headers=bearer
    )
    assert answer.status == 200
    assert answer.chunks[0] == b": open\r\n\r\n"
    assert b'"instructions"' in answer.body
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "start_interactive_command", "arguments": {"command": "x"}},
    }
    answer = await request(call, headers={**bearer, "mcp-protocol-version": "2025-06-18"})
    assert b'"structuredContent"' in answer.body


async def test_a_client_that_goes_away_cancels_its_wait_and_not_the_program(
    bearer: dict[str, str], host: ActingHost
) -> None:
    started = (await _call(bearer, "start_interactive_command", {"command": "cat"})).json["result"][
        "structuredContent"
    ]
    host.on_input = lambda _: None
    gone = asyncio.Event()
    body, headers = modern(
        "send_command_input",
        {"session_id": started["session_id"], "input_text": "x\n", "wait_seconds": 30},
    )
    waiting = asyncio.create_task(request(body, headers={**bearer, **headers}, gone=gone))
    await await_until(lambda: len(host.commands) == 2, 30, "the input")
    gone.set()
    async with asyncio.timeout(10):
        await waiting
    await host.say(host.output(started["session_id"], b"later", is_waiting=True))
    polled = (
        await _call(bearer, "send_command_input", {"session_id": started["session_id"]})
    ).json["result"]["structuredContent"]
    assert (polled["output"], polled["state"]) == ("later", "awaiting_input")


async def _wait_with_progress(
    bearer: dict[str, str], session_id: str, gone: asyncio.Event | None = None
) -> Answer:
    body, headers = modern(
        "send_command_input", {"session_id": session_id, "input_text": "x\n", "wait_seconds": 2.5}
    )
    body["params"]["_meta"] = {**META, "progressToken": "p1"}
    return await request(body, headers={**bearer, **headers}, gone=gone)


async def test_a_call_that_waits_says_how_far_the_program_is(
    bearer: dict[str, str], host: ActingHost
) -> None:
    started = (await _call(bearer, "start_interactive_command", {"command": "cat"})).json["result"][
        "structuredContent"
    ]
    host.on_input = lambda _: None
    answer = await _wait_with_progress(bearer, started["session_id"])
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [
        json.loads(line.removeprefix(b"data: "))
        for line in answer.body.splitlines()
        if line.startswith(b"data: ")
    ]
    reports = [
        event["params"] for event in events if event.get("method") == "notifications/progress"
    ]
    assert [report["progressToken"] for report in reports] == ["p1"] * len(reports)
    waited = [report["progress"] for report in reports]
    assert waited
    assert waited == sorted(set(waited))
    assert reports[0]["message"] == f"running, {len('Name: ')} bytes of output so far"
    assert events[-1]["result"]["structuredContent"]["state"] == "running"


async def test_without_a_progress_token_the_answer_is_one_json_body(
    bearer: dict[str, str], host: ActingHost
) -> None:
    started = (await _call(bearer, "start_interactive_command", {"command": "cat"})).json["result"][
        "structuredContent"
    ]
    host.on_input = lambda _: None
    answer = await _call(
        bearer,
        "send_command_input",
        {"session_id": started["session_id"], "input_text": "x\n", "wait_seconds": 1.5},
    )
    assert answer.headers["content-type"] == "application/json"


async def test_a_hundred_clients_that_go_away_leave_nothing_behind(
    bearer: dict[str, str], host: ActingHost
) -> None:
    started = (await _call(bearer, "start_interactive_command", {"command": "cat"})).json["result"][
        "structuredContent"
    ]
    host.on_input = lambda _: None
    await _call(
        bearer,
        "send_command_input",
        {"session_id": started["session_id"], "input_text": "x\n", "wait_seconds": 0},
    )
    tasks, threads = len(asyncio.all_tasks()), threading.active_count()
    body, headers = modern(
        "send_command_input", {"session_id": started["session_id"], "wait_seconds": 30}
    )
    for _ in range(10):
        gone = asyncio.Event()
        waiting = [
            asyncio.create_task(request(body, headers={**bearer, **headers}, gone=gone))
            for _ in range(10)
        ]
        await await_until(
            lambda: exchange().listeners().get(session_group(started["session_id"])) == 10,
            30,
            "ten waits",
        )
        gone.set()
        async with asyncio.timeout(10):
            await asyncio.gather(*waiting)
    await await_until(lambda: len(asyncio.all_tasks()) <= tasks, 30, "the end of their tasks")
    assert threading.active_count() <= threads
    await host.say(host.output(started["session_id"], b"later", is_waiting=True))
    polled = (
        await _call(bearer, "send_command_input", {"session_id": started["session_id"]})
    ).json["result"]["structuredContent"]
    assert polled["output"] == "later"
