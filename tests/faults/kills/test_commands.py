"""kill -9 of server and daemon while programs on pipes run: nothing is lost or run twice."""

import asyncio
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.mcp.client import Caller
from tests.support.stack import Stack
from tests.support.waiting import await_until, wait_until

pytestmark = pytest.mark.fault

ID_NAMES = {"start_command": "sessionId", "run_command": "token"}


def _command(log: Path) -> str:
    """A command that prints numbered lines until ``log``.stop exists, then their number.

    It first appends a line to ``log``, so that a second start is noticed.
    """
    counting = f"i=0; until [ -e {log}.stop ]; do i=$((i+1)); echo line $i; sleep 0.004; done"
    return f"echo begun >> {log}; {counting}; echo lines: $i"


def _stop(log: Path) -> None:
    Path(f"{log}.stop").touch()


def _assert_whole(text: str, log: Path) -> None:
    """Check that every line came once and in order, from a program that was started once."""
    *lines, last = text.splitlines()
    assert int(last.removeprefix("lines: ")) == len(lines)
    assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
    assert log.read_text() == "begun\n"


def _committed(stack: Stack) -> int:
    return int(
        stack.database.rows(
            "SELECT coalesce(sum(stdout_next_offset), 0) FROM projects_commandsession"
        )[0][0]
    )


def _wait_for_more(stack: Stack) -> None:
    seen = _committed(stack)
    wait_until(lambda: _committed(stack) > seen, 90, "more output to be committed")


def _nothing() -> None:
    """Do nothing between a kill and the start."""


def _kill_server(stack: Stack, meanwhile: Callable[[], None] = _nothing) -> None:
    stack.kill_server()
    meanwhile()
    stack.start_server()


def _kill_daemon(stack: Stack, meanwhile: Callable[[], None] = _nothing) -> None:
    stack.kill_daemon()
    meanwhile()
    stack.start_daemon()


def _kill_both(stack: Stack, meanwhile: Callable[[], None] = _nothing) -> None:
    stack.kill_daemon()
    stack.kill_server()
    meanwhile()
    stack.start_server()
    stack.start_daemon()


_KILLS = (_kill_server, _kill_daemon, _kill_both)


def _in_the_middle(stack: Stack, *kills: Callable[[Stack], None]) -> None:
    """Call each of ``kills`` while output arrives."""
    for kill in kills:
        _wait_for_more(stack)
        kill(stack)


async def _read_to_end(caller: Caller, session_id: str) -> tuple[str, dict[str, Any]]:
    text = ""
    while True:
        answer = await caller.call("read_output", sessionId=session_id, timeout=20_000)
        text += answer["stdout"]
        if not answer["isActive"] and not answer["hasMore"]:
            return text, answer


@pytest.mark.requirement("S4.R1.3", "S4.R7.4", "S1.R2.1")
async def test_a_background_session_and_a_job_lose_nothing_and_run_once(
    own_stack: Stack, tmp_path: Path
) -> None:
    logs = {tool: tmp_path / tool for tool in ID_NAMES}
    ids: dict[str, str] = {}
    async with own_stack.caller() as caller:
        for tool, log in logs.items():
            answer = await caller.call(
                tool, command=_command(log), **({"timeout": 600} if tool == "run_command" else {})
            )
            ids[tool] = answer[ID_NAMES[tool]]
    await asyncio.to_thread(_in_the_middle, own_stack, *_KILLS)
    for log in logs.values():
        _stop(log)
    async with own_stack.caller() as caller:
        text, end = await _read_to_end(caller, ids["start_command"])
        assert (end["exitCode"], end.get("lostBytes", 0)) == (0, 0)
        _assert_whole(text, logs["start_command"])
        await await_until(
            lambda: own_stack.database.state(ids["run_command"]) == "EXITED", 60, "the job's end"
        )
        answer = await caller.call("query_command_status", token=ids["run_command"])
        assert (answer["exit_code"], answer["stdout_truncated"]) == (0, False)
        _assert_whole(answer["stdout"], logs["run_command"])
    for tool in logs:
        await own_stack.database.await_verified(ids[tool])


@pytest.mark.requirement("S4.R7.4", "S1.R1.3")
async def test_a_retried_one_shot_runs_once_and_the_retry_gets_its_result(
    own_stack: Stack, tmp_path: Path
) -> None:
    # Each program is hit by one kill and ends before the restart: a one-shot has at most 45 s, and
    # a busy machine may need as long to start a server.
    for kill in _KILLS:
        log = tmp_path / kill.__name__
        arguments = {
            "command": _command(log),
            "timeout_seconds": 45,
            "request_id": str(uuid.uuid4()),
        }
        with _cut_off(own_stack, arguments):
            await asyncio.to_thread(
                _in_the_middle, own_stack, partial(kill, meanwhile=partial(_stop, log))
            )
        async with own_stack.caller() as caller:
            result = await caller.call("execute_command", **arguments)
            assert (result["return_code"], result["truncated"]) == (0, False)
            _assert_whole(result["stdout"], log)
            await own_stack.database.await_verified(result["session_id"])


@contextmanager
def _cut_off(stack: Stack, arguments: dict[str, Any]) -> Iterator[None]:
    """A call is under way in the block. Its outcome does not matter: its server is killed."""

    async def call() -> None:
        async with stack.caller() as caller:
            await caller.call("execute_command", **arguments)

    task = asyncio.create_task(call())
    try:
        yield
    finally:
        task.cancel()
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
