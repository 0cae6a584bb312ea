"""Ending a session ends everything it started, and says so to its caller."""

import re
import time

import pytest

from tests.support.stack import Stack
from tests.support.waiting import await_until


async def _assert_nothing_left(stack: Stack, session_id: str) -> None:
    await await_until(
        lambda: not stack.program_pids(session_id), 90, "the session's processes to be gone"
    )
    await await_until(
        lambda: session_id not in stack.session_ids_on_host(), 90, "the host to forget the session"
    )


@pytest.mark.requirement("S3.R3.2", "S3.R3.5", "S3.P1.5", "S3.V1.8", "S1.R4.1")
async def test_empty_input_with_the_terminate_flag_ends_a_hung_program(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("bash -c 'echo before; sleep 1000'", wait_for="before")
        await session.send("", terminate=True)
        assert session.result["state"] == "exited"
        assert session.result["end_reason"] == "terminated"
        await _assert_nothing_left(stack, session.session_id)


@pytest.mark.parametrize("tool", ["start_interactive_command", "start_command"])
async def test_input_that_nobody_reads_says_how_much_of_it_was_typed(
    stack: Stack, tool: str
) -> None:
    lines = ("x" * 999 + "\n") * 65
    async with stack.caller() as caller:
        if tool == "start_interactive_command":
            session_id = (await caller.start("sleep 1000", wait_seconds=0)).session_id
            ask, blocked = (
                "send_command_input",
                {"session_id": session_id, "input_text": lines, "wait_seconds": 30},
            )
        else:
            session_id = str((await caller.call(tool, command="sleep 1000"))["sessionId"])
            ask, blocked = "write_input", {"sessionId": session_id, "input": lines}
            await caller.call(ask, **{**blocked, "input": "first\n"})
            await caller.call(ask, **{**blocked, "input": lines[:600]})
        refusal = await caller.refusal(ask, **blocked)
        assert refusal["code"] == "INPUT_BLOCKED"
        assert re.match(r"[1-9]\d* bytes of it were typed", refusal["error"])
        await caller.call("send_command_input", session_id=session_id, terminate=True)


async def test_a_program_that_ignores_sigterm_is_killed_after_its_grace(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            "bash -c 'trap \"\" TERM HUP INT; echo ready; while :; do sleep 1; done'",
            wait_for="ready",
        )
        await session.send("", terminate=True, wait_seconds=20)
        await session.until("exited")
        assert (session.result["signal"], session.result["end_reason"]) == ("SIGKILL", "terminated")
        await _assert_nothing_left(stack, session.session_id)


async def test_children_that_ran_away_and_stopped_ones_are_found_and_ended(stack: Stack) -> None:
    runaways = """bash -c '
        setsid sleep 1000 &
        (setsid bash -c "trap \\"\\" HUP TERM; sleep 1000" &)
        (setsid nohup sleep 1000 >/dev/null 2>&1 &)
        sleep 1000 & kill -STOP $!
        read -p "go? " x'"""
    async with stack.caller() as caller:
        session = await caller.start(runaways)
        assert session.result["state"] == "awaiting_input"
        await await_until(
            lambda: len(stack.program_pids(session.session_id)) >= 5, 90, "all children to run"
        )
        await session.send("", terminate=True, wait_seconds=20)
        await session.until("exited")
        assert session.result["end_reason"] == "terminated"
        await _assert_nothing_left(stack, session.session_id)
        assert stack.database.session(session.session_id, "survivors") == ("[]",)


async def test_a_child_that_keeps_the_terminal_does_not_delay_the_end(stack: Stack) -> None:
    async with stack.caller() as caller:
        started = time.monotonic()
        session = await caller.start(
            "bash -c 'trap \"\" HUP; sleep 1000 & echo bye; exit 7'", wait_seconds=30
        )
        await session.until("exited")
        # The child would keep the terminal open for a thousand seconds.
        assert time.monotonic() - started < 60
        assert (session.result["exit_code"], session.result["output"].strip()) == (7, "bye")
        await _assert_nothing_left(stack, session.session_id)


@pytest.mark.requirement("S3.R3.3", "S3.V1.7", "S4.R7.3", "S1.R4.1")
async def test_an_abandoned_session_ends_after_its_lifetime_and_keeps_its_output(
    stack: Stack,
) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            "bash -c 'echo partial; sleep 1000'", lifetime_seconds=2, wait_for="partial"
        )
        await await_until(
            lambda: stack.database.state(session.session_id) == "TIMED_OUT",
            90,
            "the lifetime to end the session",
        )
        answer = await caller.call("get_session", session_id=session.session_id)
        assert (answer["state"], answer["end_reason"]) == ("exited", "timed_out")
        output = await caller.call("read_session_output", session_id=session.session_id, offset=0)
        assert output["output"].strip() == "partial"
        await _assert_nothing_left(stack, session.session_id)


@pytest.mark.requirement("S3.R3.1", "S3.P1.4", "S4.R4.4")
@pytest.mark.parametrize("code", [0, 7, 255])
async def test_the_exit_code_and_all_output_of_a_program_that_ends_at_once(
    stack: Stack, code: int
) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            f"bash -c 'head -c 60000 /dev/zero | tr \"\\0\" x; exit {code}'", max_output_bytes=65536
        )
        await session.until("exited")
        assert session.result["exit_code"] == code
        assert stack.database.transcript(session.session_id) == b"x" * 60000
        await stack.database.await_verified(session.session_id)
