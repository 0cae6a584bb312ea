"""Every wrong call is a coded error with a hint; nothing is started, nothing is lost, no traceback
reaches the caller.
"""

import json
import uuid
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from tests.support.mcp.client import Caller
from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="module")
def narrow_stack() -> Iterator[Stack]:
    """A stack whose project may have one interactive session at a time, as by default."""
    with running_stack(max_interactive_sessions=1) as started:
        yield started


def _assert_coded(body: dict[str, Any], code: str) -> None:
    assert body["code"] == code
    assert body["hint"]
    assert body["error"]
    assert isinstance(body["retryable"], bool)
    assert set(body) == {"error", "code", "hint", "retryable"}
    assert "Traceback" not in str(body)


def _sessions(stack: Stack) -> int:
    return int(stack.database.rows("SELECT count(*) FROM projects_commandsession")[0][0])


async def _refused(
    stack: Stack, caller: Caller, code: str, tool: str, **arguments: Any
) -> dict[str, Any]:
    """The error body; fails if the call started anything."""
    before = _sessions(stack)
    body = await caller.refusal(tool, **arguments)
    _assert_coded(body, code)
    assert _sessions(stack) == before
    return body


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("EMPTY_COMMAND", {"command": ""}),
        ("EMPTY_COMMAND", {"command": " \n "}),
        ("COMMAND_HAS_NUL", {"command": "echo \0 hi"}),
        ("INVALID_PATTERN", {"command": "true", "wait_for": "(?=x)"}),
        ("INVALID_ARGUMENT", {}),
        ("INVALID_ARGUMENT", {"command": "true", "rows": -1}),
        ("INVALID_ARGUMENT", {"command": "true", "wait_seconds": "soon"}),
        ("UNKNOWN_ARGUMENT", {"command": "true", "timeout": 3}),
        ("CONTROLLER_NOT_FOUND", {"command": "true", "controller": "nowhere"}),
    ],
)
async def test_a_wrong_start_is_refused_before_anything_happens(
    stack: Stack, code: str, arguments: dict[str, Any]
) -> None:
    async with stack.caller() as caller:
        body = await _refused(stack, caller, code, "start_interactive_command", **arguments)
        if code == "UNKNOWN_ARGUMENT":
            assert "wait_seconds" in body["hint"]


@pytest.mark.requirement("S4.R7.1")
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("PROGRAM_NOT_FOUND", {"command": "no-such-program-anywhere"}),
        ("PROGRAM_NOT_FOUND", {"command": "/no/such/program"}),
        ("PROGRAM_NOT_EXECUTABLE", {"command": "/etc/hostname"}),
        ("CWD_NOT_FOUND", {"command": "true", "cwd": "/no/such/directory"}),
        ("ENV_NOT_ALLOWED", {"command": "true", "env": {"LD_PRELOAD": "/tmp/x.so"}}),
    ],
)
async def test_what_the_host_cannot_start_is_named(
    stack: Stack, code: str, arguments: dict[str, Any]
) -> None:
    async with stack.caller() as caller:
        _assert_coded(await caller.refusal("start_interactive_command", **arguments), code)
        session = await caller.start("echo fine")
        assert session.result["output"].strip() == "fine"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send_command_input", {"input_text": "x\n"}),
        ("get_session", {}),
        ("read_session_output", {}),
        ("resize_session", {"rows": 10, "cols": 10}),
    ],
)
async def test_unknown_sessions_and_those_of_others_are_not_told_apart(
    stack: Stack, tool: str, arguments: dict[str, Any]
) -> None:
    unknown = str(uuid.uuid4())
    async with (
        stack.caller() as caller,
        caller.terminal("cat") as session,
        stack.caller(stack.provisioned.other_token) as stranger,
    ):
        nobodys = await stranger.refusal(tool, session_id=unknown, **arguments)
        theirs = await stranger.refusal(tool, session_id=session.session_id, **arguments)
        _assert_coded(nobodys, "SESSION_NOT_FOUND")
        assert {**theirs, "error": ""} == {**nobodys, "error": ""}
        assert theirs["error"].replace(session.session_id, unknown) == nobodys["error"]
        await session.send("still here\n")
        assert "still here" in session.result["output"]


async def test_a_session_id_that_is_none_is_refused(stack: Stack) -> None:
    async with stack.caller() as caller:
        body = await caller.refusal("get_session", session_id="not-a-uuid")
        assert body["code"] in {"SESSION_NOT_FOUND", "INVALID_ARGUMENT"}


async def test_input_after_the_end_is_refused_and_the_output_stays(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("echo last words")
        assert session.result["state"] == "exited"
        body = await caller.refusal(
            "send_command_input", session_id=session.session_id, input_text="more\n"
        )
        _assert_coded(body, "SESSION_ENDED")
        answer = await caller.call("read_session_output", session_id=session.session_id, offset=0)
        assert answer["output"].strip() == "last words"


@pytest.mark.requirement("S3.R3.4", "S3.C1.2")
async def test_a_second_session_over_the_limit_names_the_active_one(narrow_stack: Stack) -> None:
    async with narrow_stack.caller() as caller:
        async with caller.terminal("cat") as first:
            body = await _refused(
                narrow_stack,
                caller,
                "SESSION_LIMIT_REACHED",
                "start_interactive_command",
                command="cat",
            )
            assert first.session_id in body["error"]
            assert first.session_id in body["hint"]
            await first.send("unharmed\n")
            assert "unharmed" in first.result["output"]
        async with caller.terminal("cat") as second:
            assert second.result["state"] == "awaiting_input"


async def test_a_host_that_is_not_connected_and_a_project_without_hosts(stack: Stack) -> None:
    async with stack.caller(stack.provisioned.away_token) as caller:
        body = await _refused(
            stack, caller, "CONTROLLER_OFFLINE", "start_interactive_command", command="true"
        )
        assert body["retryable"]
    async with stack.caller(stack.provisioned.other_token) as caller:
        await _refused(stack, caller, "NO_CONTROLLER", "start_interactive_command", command="true")


async def test_wrong_input_is_refused_as_a_whole_and_the_session_goes_on(stack: Stack) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "INPUT_TOO_LARGE": {"input_text": "x" * 70_000},
        "INPUT_LINE_TOO_LONG": {"input_text": "y" * 5_000 + "\n"},
        "UNKNOWN_KEY": {"keys": ["enter", "hyper-x"]},
        "UNKNOWN_ARGUMENT": {"input_text": "x", "text": "y"},
        "INVALID_ARGUMENT": {"input_text": 7},
    }
    async with stack.caller() as caller, caller.terminal("cat") as session:
        for code, arguments in wrong.items():
            _assert_coded(
                await caller.refusal(
                    "send_command_input", session_id=session.session_id, **arguments
                ),
                code,
            )
        await session.send("")
        assert session.result["state"] == "awaiting_input"
        await session.send("good\n")
        assert "refused" not in session.result["hint"]
        assert session.seen.splitlines() == ["good", "good"]


async def test_a_repeated_request_acts_once_and_a_reused_request_id_is_refused(
    stack: Stack,
) -> None:
    request_id = str(uuid.uuid4())
    async with stack.caller() as caller, caller.terminal("cat") as session:
        await session.send("once\n", request_id=request_id)
        await caller.call(
            "send_command_input",
            session_id=session.session_id,
            input_text="once\n",
            request_id=request_id,
        )
        body = await caller.refusal(
            "send_command_input",
            session_id=session.session_id,
            input_text="else\n",
            request_id=request_id,
        )
        _assert_coded(body, "REQUEST_ID_REUSED")
        await session.send("end\n")
        assert stack.database.transcript(session.session_id) == b"once\r\nonce\r\nend\r\nend\r\n"


async def test_a_reader_may_not_start_and_a_stranger_may_not_call(stack: Stack) -> None:
    async with stack.caller(stack.provisioned.reader_token) as reader:
        assert "host" in str(await reader.call("list_controllers"))
        await _refused(stack, reader, "SCOPE_MISSING", "start_interactive_command", command="true")
    async with httpx2.AsyncClient(timeout=60) as http:
        for headers in (
            {},
            {"Authorization": "Bearer hl_0000000000000000_" + "A" * 43},
            {"Authorization": "Basic x"},
        ):
            answer = await http.post(
                stack.url, headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            )
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_an_unknown_tool_is_a_protocol_error(stack: Stack) -> None:
    async with stack.caller() as caller:
        with pytest.raises(MCPError) as refused:
            await caller.client.call_tool("no_such_tool", {})
        assert refused.value.code == -32602


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28", "1999-01-01"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'{"jsonrpc":"2.0",',
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\xff"}}',
    ],
)
async def test_a_body_that_is_no_request_is_refused_with_a_code(
    stack: Stack, body: bytes, version: str
) -> None:
    answer = await _posted(stack, body, version)
    assert answer.status_code == 400
    error = answer.json()["error"]
    _assert_coded(error["data"], "REQUEST_NOT_UNDERSTOOD")
    assert error["data"]["hint"] in error["message"]
    assert "pydantic" not in error["message"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"method": "no/such"}, "Method not found: no/such"),
        ({"method": "tools/call"}, "Invalid request parameters"),
        ({"method": "tools/call", "params": {"name": 5}}, "Invalid request parameters"),
        (
            {"method": "tools/call", "params": {"name": "get_session", "arguments": "{}"}},
            "Invalid request parameters",
        ),
        ({"method": "prompts/get"}, "Invalid request parameters"),
        ({"method": "tools/list", "params": {"cursor": 7}}, "Invalid request parameters"),
    ],
)
async def test_a_request_with_a_wrong_method_or_params_is_refused_with_a_code(
    stack: Stack, request_: dict[str, Any], said: str
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 'a "{}" é', **request_})
    answer = await _posted(stack, body.encode(), "2025-06-18")
    (event,) = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    told = json.loads(event.removeprefix("data: "))
    _assert_coded(told["error"]["data"], "REQUEST_NOT_UNDERSTOOD")
    assert told["error"]["message"].startswith(f"{said}. Nothing was done.")
    assert told["id"] == 'a "{}" é'


async def _posted(stack: Stack, body: bytes, version: str) -> httpx2.Response:
    headers = {
        "Authorization": f"Bearer {stack.provisioned.token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
    }
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(
            f"http://127.0.0.1:{stack.port}/mcp", content=body, headers=headers
        )


async def test_the_logs_hold_no_traceback_after_all_that(stack: Stack) -> None:
    async with stack.caller() as caller:
        await caller.refusal("get_session", session_id=str(uuid.uuid4()))
    assert "Traceback" not in stack.logs(10_000)
