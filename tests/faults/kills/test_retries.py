"""Callers that repeat calls or disappear: one program, each input once, the session goes on."""

import asyncio
import uuid

import pytest

from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

_TIMES = 50


async def test_fifty_equal_starts_at_once_make_one_session(stack: Stack) -> None:
    request_id = str(uuid.uuid4())
    async with stack.caller() as caller:
        calls = (
            caller.call("start_interactive_command", command="cat", request_id=request_id)
            for _ in range(_TIMES)
        )
        answers = await asyncio.gather(*calls)
        sessions = {answer["session_id"] for answer in answers}
        assert len(sessions) == 1
        session_id = sessions.pop()
        assert len(stack.program_pids(session_id)) == 1
        await caller.call("send_command_input", session_id=session_id, terminate=True)


async def test_fifty_equal_inputs_at_once_are_typed_once(stack: Stack) -> None:
    request_id = str(uuid.uuid4())
    async with stack.caller() as caller, caller.terminal("cat") as session:
        same = {"session_id": session.session_id, "input_text": "once\n", "request_id": request_id}
        await asyncio.gather(*(caller.call("send_command_input", **same) for _ in range(_TIMES)))
        await session.send("end\n")
        assert stack.database.transcript(session.session_id) == b"once\r\nonce\r\nend\r\nend\r\n"


async def test_different_inputs_at_once_all_arrive_once(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal("cat") as session:
        words = [f"word{number:02d}" for number in range(20)]
        await asyncio.gather(
            *(
                caller.call(
                    "send_command_input", session_id=session.session_id, input_text=f"{word}\n"
                )
                for word in words
            )
        )

        def arrived() -> bool:
            shown = stack.database.transcript(session.session_id).decode().split()
            return sorted(shown) == sorted(words * 2)

        await await_until(arrived, 90, "every word and its echo")


async def test_a_caller_that_leaves_in_the_middle_of_a_wait_harms_nothing(stack: Stack) -> None:
    async with (
        stack.caller() as caller,
        caller.terminal("bash -c 'read -p \"Name: \" n; sleep 2; echo hello $n'") as session,
    ):
        await session.send("ada\n", wait_seconds=0)
        for _ in range(10):
            async with stack.caller() as impatient:
                waiting = asyncio.create_task(
                    impatient.call(
                        "send_command_input", session_id=session.session_id, wait_seconds=20
                    )
                )
                done, _ = await asyncio.wait({waiting}, timeout=0.05)
                if not done:
                    waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
        await session.until("exited")
        receipt = await caller.call("read_session_output", session_id=session.session_id, offset=0)
        assert "hello ada" in receipt["output"]
        assert session.result["exit_code"] == 0
