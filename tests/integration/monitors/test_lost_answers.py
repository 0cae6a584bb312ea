"""A monitor whose answer was lost is asked for again, and there is one of it."""

import asyncio
import uuid

from tests.support.mcp.client import Caller
from tests.support.mcp.monitors import code_of, new_log, started
from tests.support.stack import Stack


async def test_a_start_whose_answer_was_lost_is_one_monitor(stack: Stack, caller: Caller) -> None:
    log = new_log(stack, "one\n")
    start = {
        "session_id": str(uuid.uuid4()),
        "session_type": "file",
        "log_file": str(log),
        "start_at_end": True,
    }
    again = {**start, "request_id": str(uuid.uuid4())}
    answers = await asyncio.gather(
        *(caller.call("start_session_monitor", **again) for _ in range(8))
    )
    assert all(answer == answers[0] for answer in answers)
    log.write_text("one\ntwo\n")
    assert (await caller.call("get_session_updates", session_id=start["session_id"]))[
        "new_content"
    ] == "two\n"
    log.unlink()
    assert await caller.call("start_session_monitor", **again) == answers[0]
    monitors = (await caller.call("list_session_monitors", active_only=False))["monitors"]
    assert [monitor["session_id"] for monitor in monitors if monitor["log_file"] == str(log)] == [
        start["session_id"]
    ]
    assert await code_of(caller, "start_session_monitor", **start) == "SESSION_ALREADY_EXISTS"
    assert (
        await code_of(caller, "start_session_monitor", **{**again, "session_id": str(uuid.uuid4())})
        == "REQUEST_ID_REUSED"
    )
    stop = {"session_id": start["session_id"], "request_id": again["request_id"]}
    assert await code_of(caller, "stop_session_monitor", **stop) == "REQUEST_ID_REUSED"


async def test_a_stop_whose_answer_was_lost_is_told_again(stack: Stack, caller: Caller) -> None:
    log = new_log(stack, "one\n")
    stop = {"session_id": await started(caller, log), "request_id": str(uuid.uuid4())}
    await caller.call("get_session_updates", session_id=stop["session_id"])
    first = await caller.call("stop_session_monitor", **stop)
    assert (first["total_bytes_processed"], first["log_deleted"]) == (4, True)
    log.write_text("of another\n")
    assert await caller.call("stop_session_monitor", **stop) == first
    assert log.exists()
    assert (
        await code_of(caller, "stop_session_monitor", session_id=stop["session_id"])
        == "SESSION_NOT_FOUND"
    )
    assert (
        await code_of(caller, "stop_session_monitor", **stop, save_log=True) == "REQUEST_ID_REUSED"
    )


async def test_an_answer_is_bounded_and_a_lost_one_can_be_had_again(
    stack: Stack, caller: Caller
) -> None:
    content = "".join(f"line {number} é\n" for number in range(12_000))
    session_id = await started(caller, new_log(stack, content))
    seen = ""
    while True:
        request_id = str(uuid.uuid4())
        answer = await caller.call(
            "get_session_updates", session_id=session_id, request_id=request_id
        )
        assert len(answer["new_content"].encode()) <= 65_536
        assert (
            await caller.call("get_session_updates", session_id=session_id, request_id=request_id)
            == answer
        )
        seen += answer["new_content"]
        if not answer["has_more"]:
            break
    assert seen == content
    end = await caller.call("stop_session_monitor", session_id=session_id)
    assert end["total_bytes_processed"] == len(content.encode())


async def test_concurrent_retries_of_a_read_all_get_the_same_range(
    stack: Stack, caller: Caller
) -> None:
    session_id = await started(caller, new_log(stack, "x" * 200_000))
    request_id = str(uuid.uuid4())
    calls = (
        caller.call("get_session_updates", session_id=session_id, request_id=request_id)
        for _ in range(6)
    )
    answers = await asyncio.gather(*calls)
    assert {(answer["offset"], answer["next_offset"]) for answer in answers} == {(0, 65_536)}
    assert (await caller.call("get_session_updates", session_id=session_id))["offset"] == 65_536
