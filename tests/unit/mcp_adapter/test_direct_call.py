"""Calls that take long are streams that live; clients that leave cancel their calls alone."""

import asyncio
import json
import re
from functools import partial
from typing import Any

import pytest
from mcp.server import _streamable_http_modern as sdk
from sse_starlette import EventSourceResponse

from mcp_adapter import event_stream
from mcp_adapter.asgi import serve
from mcp_adapter.server import build_server
from projects.wakeups.bus import exchange
from projects.wakeups.doorbells import session_group
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import Answer, modern, request
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)

_OLD = {"mcp-protocol-version": "2025-06-18"}
_DATA = re.compile(rb"data: ([^\r]*)")
_ALIVE = re.compile(rb"(: ping[^\r]*\r\n\r\n)+")


def _call(era: str, tool: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    body, headers = modern(tool, arguments)
    if era == "old":
        del body["params"]["_meta"]
        headers = _OLD
    return body, headers


async def _waiting_session(bearer: dict[str, str], host: ActingHost) -> str:
    body, headers = _call("new", "start_interactive_command", command="cat")
    started = await request(body, headers={**bearer, **headers})
    host.on_input = lambda _: None
    session_id = str(started.json["result"]["structuredContent"]["session_id"])
    body, headers = _call(
        "new", "send_command_input", session_id=session_id, input_text="x\n", wait_seconds=0
    )
    await request(body, headers={**bearer, **headers})
    return session_id


def _shape(answer: Answer) -> tuple[Any, ...]:
    """All but what differs from call to call: the number of pings, and the times in the result."""
    (data,) = _DATA.findall(answer.body)
    frame = _DATA.sub(b"data", _ALIVE.sub(b"(alive)", answer.body))
    result = json.loads(data)["result"]
    return answer.status, answer.raw_headers, frame, list(result), list(result["structuredContent"])


@pytest.mark.parametrize("era", ["old", "new"])
async def test_a_call_that_takes_long_is_the_same_stream_both_ways(
    bearer: dict[str, str], host: ActingHost, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    monkeypatch.setattr(event_stream, "PING_SECONDS", 0.2)
    monkeypatch.setattr(EventSourceResponse, "DEFAULT_PING_INTERVAL", 0.2)
    monkeypatch.setattr(sdk, "_SSE_PING_INTERVAL", 0.2)
    session_id = await _waiting_session(bearer, host)
    body, headers = _call(era, "send_command_input", session_id=session_id, wait_seconds=1.5)
    ours = await request(body, headers={**bearer, **headers})
    by_sdk = await request(
        body,
        headers={**bearer, **headers},
        application=partial(serve, make_server=build_server),
    )
    assert b"(alive)" in _shape(ours)[2]
    assert _shape(ours) == _shape(by_sdk)
    assert ours.body.startswith(b": open\r\n\r\n")


async def test_a_stream_of_the_older_era_opens_long_before_its_result(
    bearer: dict[str, str], host: ActingHost
) -> None:
    session_id = await _waiting_session(bearer, host)
    body, headers = _call("old", "send_command_input", session_id=session_id, wait_seconds=1.5)
    answer = await request(body, headers={**bearer, **headers})
    assert answer.chunks[0] == b": open\r\n\r\n"
    assert len(answer.chunks) == 2


@pytest.mark.parametrize("era", ["old", "new"])
async def test_a_client_that_leaves_a_plain_call_leaves_the_program_alone(
    bearer: dict[str, str], host: ActingHost, era: str
) -> None:
    session_id = await _waiting_session(bearer, host)
    gone = asyncio.Event()
    body, headers = _call(era, "send_command_input", session_id=session_id, wait_seconds=30)
    waiting = asyncio.create_task(request(body, headers={**bearer, **headers}, gone=gone))
    bell = session_group(session_id)
    await await_until(lambda: exchange().listeners().get(bell) == 1, 30, "the wait")
    gone.set()
    async with asyncio.timeout(10):
        answer = await waiting
    assert b"data:" not in answer.body
    await host.say(host.output(session_id, b"later", is_waiting=True))
    body, headers = _call("new", "send_command_input", session_id=session_id)
    polled = (await request(body, headers={**bearer, **headers})).json["result"]
    assert polled["structuredContent"]["output"] == "later"
