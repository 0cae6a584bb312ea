"""``/mcp`` while a call waits: streams, progress, and clients that go away."""

import asyncio
import json
import threading

import pytest

from projects.wakeups.bus import exchange
from projects.wakeups.doorbells import session_group
from tests.support.hosts.acting_host import ActingHost
from tests.support.mcp.requests import META, Answer, call, modern, request, result_of
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


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
    started = await result_of(bearer, "start_interactive_command", {"command": "cat"})
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
    polled = await result_of(bearer, "send_command_input", {"session_id": started["session_id"]})
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
    started = await result_of(bearer, "start_interactive_command", {"command": "cat"})
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
    started = await result_of(bearer, "start_interactive_command", {"command": "cat"})
    host.on_input = lambda _: None
    answer = await call(
        bearer,
        "send_command_input",
        {"session_id": started["session_id"], "input_text": "x\n", "wait_seconds": 1.5},
    )
    assert answer.headers["content-type"] == "application/json"


async def test_a_hundred_clients_that_go_away_leave_nothing_behind(
    bearer: dict[str, str], host: ActingHost
) -> None:
    started = await result_of(bearer, "start_interactive_command", {"command": "cat"})
    host.on_input = lambda _: None
    await call(
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
    polled = await result_of(bearer, "send_command_input", {"session_id": started["session_id"]})
    assert polled["output"] == "later"
