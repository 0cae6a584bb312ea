"""Monitors through the official client, against a real server and a real daemon."""

import asyncio
import os
import uuid

import pytest

from projects.tools.registry import tool_named
from tests.support.mcp.client import Caller
from tests.support.mcp.monitors import code_of, new_log, started
from tests.support.stack import Stack
from tests.support.waiting import await_until

# ---- the test cases of requirement 002, with ids as its pattern has them -------------------------


@pytest.mark.requirement("S2.R1U.1", "S2.R1T.1")
async def test_start_session_monitor_success(stack: Stack, caller: Caller) -> None:
    session_id, log = str(uuid.uuid4()), new_log(stack)
    metadata = {"host": "prod-server", "user": "admin"}
    result = await caller.call(
        "start_session_monitor",
        session_id=session_id,
        session_type="ssh",
        log_file=str(log),
        metadata=metadata,
    )
    assert result["session_id"] == session_id
    assert result["status"] == "active"
    assert result["file_position"] == 0
    assert "start_time" in result


@pytest.mark.requirement("S2.R1U.2", "S2.R1E.1")
async def test_start_session_duplicate_error(stack: Stack, caller: Caller) -> None:
    log = new_log(stack)
    session_id = await started(caller, log)
    body = await caller.refusal(
        "start_session_monitor", session_id=session_id, session_type="ssh", log_file=str(log)
    )
    assert body["code"] == "SESSION_ALREADY_EXISTS"
    assert body["error"] == f"Session {session_id} already exists"


@pytest.mark.requirement("S2.R1U.3", "S2.R1E.2")
async def test_start_session_file_not_found(stack: Stack, caller: Caller) -> None:
    for path in ("/nonexistent/path.log", f"{stack.session_logs}/no.log"):
        body = await caller.refusal(
            "start_session_monitor",
            session_id=str(uuid.uuid4()),
            session_type="file",
            log_file=path,
        )
        assert (body["code"], body["error"]) == ("FILE_NOT_FOUND", f"Log file not found: {path}")


@pytest.mark.requirement("S2.R2U.1", "S2.R2T.1")
async def test_get_session_updates_new_content(stack: Stack, caller: Caller) -> None:
    log = new_log(stack)
    session_id = await started(caller, log)
    with log.open("a") as file:
        file.write("New log line\n")
    result = await caller.call("get_session_updates", session_id=session_id)
    assert "New log line" in result["new_content"]
    assert result["file_position"] > 0


@pytest.mark.requirement("S2.R2U.2")
async def test_get_session_updates_empty(stack: Stack, caller: Caller) -> None:
    session_id = await started(caller, new_log(stack))
    result = await caller.call("get_session_updates", session_id=session_id)
    assert result["new_content"] == ""
    assert result["has_more"] is False


@pytest.mark.requirement("S2.R2U.3", "S2.R2E.1", "S2.R3U.2", "S2.R3E.1")
@pytest.mark.parametrize("tool", ["get_session_updates", "stop_session_monitor"])
async def test_an_unknown_session_is_not_found(stack: Stack, caller: Caller, tool: str) -> None:
    for session_id in ("nonexistent-id", str(uuid.uuid4())):
        body = await caller.refusal(tool, session_id=session_id)
        assert (body["code"], body["error"]) == (
            "SESSION_NOT_FOUND",
            f"Session {session_id} not found",
        )


@pytest.mark.requirement("S2.R3U.1", "S2.R3T.1")
async def test_stop_session_monitor(stack: Stack, caller: Caller) -> None:
    session_id = await started(caller, new_log(stack))
    result = await caller.call("stop_session_monitor", session_id=session_id, save_log=False)
    assert result["status"] == "stopped"
    assert result["total_bytes_processed"] >= 0
    assert result["session_duration_seconds"] > 0


@pytest.mark.requirement("S2.R3U.3")
async def test_stop_session_log_cleanup(stack: Stack, caller: Caller) -> None:
    log = new_log(stack)
    session_id = await started(caller, log)
    assert log.exists()
    result = await caller.call("stop_session_monitor", session_id=session_id, save_log=False)
    assert not log.exists()
    assert (result["log_deleted"], result["log_kept_reason"]) == (True, None)


# ---- beyond them ---------------------------------------------------------------------------------


@pytest.mark.requirement("S2.R1T.1", "S2.R2T.1", "S2.R3T.1")
def test_the_schemas_have_everything_the_requirement_has() -> None:
    start, get, stop = (
        tool_named(f"{name}")
        for name in ("start_session_monitor", "get_session_updates", "stop_session_monitor")
    )
    fields = start.input_schema["properties"]
    assert (
        fields["session_id"]["pattern"]
        == "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    )
    assert fields["session_type"]["enum"] == ["ssh", "script", "file"]
    assert fields["metadata"]["additionalProperties"] == {"type": "string"}
    assert start.input_schema["required"] == ["session_id", "session_type", "log_file"]
    assert get.input_schema["required"] == stop.input_schema["required"] == ["session_id"]
    assert stop.input_schema["properties"]["save_log"]["default"] is False
    assert {"session_id", "status", "file_position", "start_time", "log_file"} <= set(
        start.output_schema["required"]
    )
    assert start.output_schema["properties"]["start_time"] == {
        "type": "string",
        "format": "date-time",
    }
    assert {"session_id", "new_content", "file_position", "has_more"} <= set(
        get.output_schema["required"]
    )
    assert {"session_id", "status", "total_bytes_processed", "session_duration_seconds"} <= set(
        stop.output_schema["required"]
    )


@pytest.mark.requirement("S2.R1E.4")
@pytest.mark.parametrize(
    "session_id",
    [
        "abc123-def456",
        "",
        "3F2B8C1E-9D4A-4C6F-8A7B-1E2D3C4B5A69",
        "3f2b8c1e9d4a4c6f8a7b1e2d3c4b5a69",
    ],
)
async def test_an_id_of_another_form_is_refused(
    stack: Stack, caller: Caller, session_id: str
) -> None:
    log = str(new_log(stack))
    assert (
        await code_of(
            caller,
            "start_session_monitor",
            session_id=session_id,
            session_type="file",
            log_file=log,
        )
        == "INVALID_SESSION_ID"
    )


@pytest.mark.requirement("S2.R1E.3", "S2.R2E.2")
async def test_a_log_that_may_not_be_read_or_is_gone_is_told(unprivileged_stack: Stack) -> None:
    stack = unprivileged_stack
    log = stack.log_root / "closed.log"
    log.write_text("x\n")
    async with stack.caller() as caller:
        session_id = await started(caller, log)
        log.chmod(0o600)
        new = {"session_id": str(uuid.uuid4()), "session_type": "file", "log_file": str(log)}
        body = await caller.refusal("start_session_monitor", **new)
        assert (body["code"], body["error"]) == (
            "FILE_NOT_READABLE",
            f"Cannot read log file: {log}",
        )
        body = await caller.refusal("get_session_updates", session_id=session_id)
        assert (body["code"], body["error"]) == ("FILE_READ_ERROR", "Failed to read log file")
        log.chmod(0o644)
        assert (await caller.call("get_session_updates", session_id=session_id))[
            "new_content"
        ] == "x\n"
        log.unlink()
        assert (
            await code_of(caller, "get_session_updates", session_id=session_id) == "FILE_READ_ERROR"
        )


async def test_what_is_outside_has_one_refusal_whether_it_is_there_or_not(
    stack: Stack, caller: Caller
) -> None:
    inside = stack.log_root
    (inside / "link").symlink_to("/etc/shadow")
    os.mkfifo(inside / "fifo")
    (stack.root / "secret").write_text("secret")
    os.link(stack.root / "secret", inside / "hard")
    paths = [
        "/etc/shadow",
        "/etc/no-such-file",
        "/proc/self/environ",
        "/dev/zero",
        "/",
        "relative",
        f"{inside}/../secret",
        str(inside),
    ]
    paths += [f"{inside}/{name}" for name in ("link", "fifo", "hard", "link/x\0")]
    new = {"session_id": str(uuid.uuid4()), "session_type": "file"}
    bodies = [await caller.refusal("start_session_monitor", log_file=path, **new) for path in paths]
    assert {body["code"] for body in bodies} == {"PATH_NOT_ALLOWED"}
    assert all(body == bodies[0] for body in bodies)
    (host,) = (await caller.call("list_controllers"))["controllers"]
    assert str(inside) in host["log_roots"]
    assert str(inside) in bodies[0]["hint"]
    log = inside / "swapped.log"
    log.write_text("mine\n")
    session_id = await started(caller, log)
    log.unlink()
    log.symlink_to("/etc/shadow")
    assert await caller.refusal("get_session_updates", session_id=session_id) == bodies[0]


async def test_a_log_that_is_no_recording_stays(stack: Stack, caller: Caller) -> None:
    log = stack.log_root / "kept.log"
    log.write_text("x")
    result = await caller.call("stop_session_monitor", session_id=await started(caller, log))
    assert (result["log_deleted"], result["log_kept_reason"]) == (False, "not_managed")
    assert log.exists()
    saved = new_log(stack)
    result = await caller.call(
        "stop_session_monitor", session_id=await started(caller, saved), save_log=True
    )
    assert (result["log_deleted"], result["log_kept_reason"], saved.exists()) == (
        False,
        "save_log",
        True,
    )


async def test_a_wait_ends_the_moment_something_is_written(stack: Stack, caller: Caller) -> None:
    log = new_log(stack, "before\n")
    session_id = await started(caller, log, start_at_end=True)
    waiting = asyncio.create_task(
        caller.call("get_session_updates", session_id=session_id, wait_seconds=25)
    )
    await await_until(
        lambda: stack.database.rows("SELECT 1 FROM projects_filerequest WHERE sent_epoch > 0"),
        90,
        "the question",
    )
    with log.open("a") as file:
        file.write("after\n")
    result = await asyncio.wait_for(waiting, 15)
    assert result["new_content"] == "after\n"
    assert not stack.database.rows("SELECT 1 FROM projects_filerequest")


async def test_late_writes_to_a_rotated_log_arrive_once_and_marked_late(
    stack: Stack, caller: Caller
) -> None:
    log = new_log(stack, "1\n")
    old = log.with_name(f"{log.name}.1")
    session_id = await started(caller, log)
    assert (await caller.call("get_session_updates", session_id=session_id))["new_content"] == "1\n"
    log.rename(old)
    log.write_text("2\n")
    answer = await caller.call("get_session_updates", session_id=session_id, wait_seconds=25)
    assert (answer["new_content"], answer["reset_reason"], answer["late"]) == (
        "2\n",
        "rotated",
        False,
    )
    for content in ("late\n", "later\n"):
        with old.open("a") as file:
            file.write(content)
        answer = await caller.call("get_session_updates", session_id=session_id, wait_seconds=25)
        assert (
            answer["new_content"],
            answer["late"],
            answer["reset"],
            answer["file_position"],
        ) == (content, True, False, 2)
    with log.open("a") as file:
        file.write("3\n")
    answer = await caller.call("get_session_updates", session_id=session_id, wait_seconds=25)
    assert (answer["new_content"], answer["late"], answer["file_position"], answer["offset"]) == (
        "3\n",
        False,
        4,
        15,
    )
    await caller.call("stop_session_monitor", session_id=session_id, save_log=True)


async def test_two_callers_of_one_monitor_share_what_comes(stack: Stack, caller: Caller) -> None:
    session_id = await started(caller, new_log(stack, "x" * 300_000))
    answers = await asyncio.gather(
        *(caller.call("get_session_updates", session_id=session_id) for _ in range(8))
    )
    parts = sorted(
        (answer["offset"], answer["next_offset"]) for answer in answers if answer["new_content"]
    )
    assert parts == [
        (0, 65_536),
        (65_536, 131_072),
        (131_072, 196_608),
        (196_608, 262_144),
        (262_144, 300_000),
    ]


async def test_a_monitor_of_another_project_does_not_exist(stack: Stack, caller: Caller) -> None:
    session_id = await started(caller, new_log(stack, "x\n"))
    async with stack.caller(stack.provisioned.other_token) as other:
        for tool in ("get_session_updates", "stop_session_monitor"):
            assert await code_of(other, tool, session_id=session_id) == "SESSION_NOT_FOUND"
        assert (
            await code_of(other, "search_session_output", pattern="x", session_id=session_id)
            == "SESSION_NOT_FOUND"
        )
    async with stack.caller(stack.provisioned.away_token) as away:
        new = {"session_id": session_id, "session_type": "file", "log_file": "/x"}
        assert await code_of(away, "start_session_monitor", **new) == "CONTROLLER_OFFLINE"
    async with stack.caller(stack.provisioned.reader_token) as reader:
        assert (
            await code_of(reader, "get_session_updates", session_id=session_id) == "SCOPE_MISSING"
        )
