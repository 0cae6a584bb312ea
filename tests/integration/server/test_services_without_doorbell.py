"""The services called from a process that shares only the database with the server.

A lost doorbell costs time and never data.
"""

import asyncio
import json
import sys
from collections.abc import Iterator

import pytest

from tests.support.stack import PROJECT_ROOT, Stack, running_stack
from tests.support.waiting import await_until


@pytest.mark.requirement("S3.D1.1", "S3.D1.2", "S3.D1.3", "S3.D1.4", "S3.D1.5", "S3.R3.2")
async def test_start_answer_and_terminate_from_another_process(stack: Stack) -> None:
    # The program's channel layer is in its own memory, even if the servers use Redis.
    environment = {
        **stack.server_environment(REDIS_URL=""),
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
    }
    command = [sys.executable, "-m", "tests.support.service_session", "first"]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=PROJECT_ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, problems = await asyncio.wait_for(process.communicate(), 180)
    assert process.returncode == 0, problems.decode()
    results = json.loads(out.splitlines()[-1])

    started, answered, ended = results["started"], results["answered"], results["ended"]
    assert started["type"] == "InteractiveCommandResult"
    assert (started["output"], started["is_alive"], started["exit_code"]) == ("Name: ", True, None)
    assert started["duration_ms"] >= 0
    assert answered["type"] == "InteractiveOutputResult"
    assert "hello ada" in answered["output"]
    assert answered["is_alive"]
    assert ended["type"] == "CommandResult"
    assert ended["success"]
    assert {"stdout", "stderr", "return_code", "duration_ms"} <= set(ended)
    await await_until(
        lambda: stack.database.state(started["session_id"]) == "TERMINATED",
        90,
        "the end to be committed",
    )


@pytest.fixture(scope="module")
def brief_stack() -> Iterator[Stack]:
    """A stack whose sessions live for two seconds unless they ask for more."""
    with running_stack(server_environment={"INTERACTIVE_CMD_TIMEOUT_SECONDS": "2"}) as started:
        yield started


@pytest.mark.requirement("S3.C1.3", "S3.R3.3")
async def test_the_lifetime_is_five_minutes_unless_it_is_configured(
    stack: Stack, brief_stack: Stack
) -> None:
    async with stack.caller() as caller, caller.terminal("cat") as session:
        assert stack.database.session(session.session_id, "lifetime_seconds") == (300.0,)
    async with brief_stack.caller() as caller:
        session = await caller.start("sleep 1000", wait_seconds=0)
        await session.until("exited")
        assert session.result["end_reason"] == "timed_out"
