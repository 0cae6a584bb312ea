"""How much of a job's output is kept, and for how long."""

import pytest

from tests.programs.families.jobs import completed, query, submit
from tests.support.mcp.client import Caller
from tests.support.stack import running_stack
from tests.support.waiting import await_until

MEBIBYTE = 1024 * 1024


@pytest.mark.requirement("S4.R4.1", "S4.R4.2", "S4.R4.3")
async def test_of_fifty_megabytes_the_newest_ten_mebibytes_are_kept_and_marked(
    caller: Caller,
) -> None:
    token = await submit(
        caller, "yes 0123456789abcdef | head -c 49999999; printf '!'; echo whole >&2", timeout=120
    )
    answer = await completed(caller, token, 120)
    assert (answer["stdout_length"], answer["stdout_truncated"]) == (50_000_000, True)
    assert len(answer["stdout"].encode()) == 10 * MEBIBYTE
    line = "0123456789abcdef\n"
    start = 50_000_000 - 10 * MEBIBYTE
    expected = (line * (50_000_000 // len(line) + 1))[start:49_999_999] + "!"
    assert answer["stdout"] == expected
    assert (answer["stderr"], answer["stderr_length"], answer["stderr_truncated"]) == (
        "whole\n",
        6,
        False,
    )
    tail = await query(caller, token, stdout_offset=50_000_000 - 20, stderr_offset=6)
    assert tail["stdout"] == expected[-20:]
    assert (await query(caller, token, stdout_offset=1000))["stdout"] == expected, (
        "what is gone is left out, not refused"
    )


@pytest.mark.requirement("S4.R4.1", "S4.R4.2", "S4.R4.3")
async def test_the_buffer_of_one_job_can_be_made_smaller(caller: Caller) -> None:
    token = await submit(caller, "seq 1 100000; seq 1 50 >&2", max_buffer_size=1024)
    answer = await completed(caller, token)
    written = "".join(f"{number}\n" for number in range(1, 100_001))
    assert (answer["stdout"], answer["stdout_length"], answer["stdout_truncated"]) == (
        written[-1024:],
        len(written),
        True,
    )
    assert (answer["stderr_truncated"], answer["stderr"]) == (
        False,
        "".join(f"{number}\n" for number in range(1, 51)),
    )


@pytest.mark.requirement("S4.R4.1")
async def test_a_larger_buffer_keeps_more_output_and_its_bounds_are_enforced(
    caller: Caller,
) -> None:
    token = await submit(
        caller, "yes 0123456789abcde | head -c 12582912", max_buffer_size=12 * MEBIBYTE
    )
    answer = await completed(caller, token)
    assert (len(answer["stdout"]), answer["stdout_truncated"]) == (12 * MEBIBYTE, False)
    for size in (1023, 100 * MEBIBYTE + 1):
        assert "max_buffer_size" in str(
            await caller.refusal("run_command", command="true", max_buffer_size=size)
        )
    (tool,) = [
        tool for tool in (await caller.client.list_tools()).tools if tool.name == "run_command"
    ]
    assert tool.input_schema["properties"]["max_buffer_size"]["default"] == 10 * MEBIBYTE


@pytest.mark.requirement("S4.R4.4")
async def test_output_stays_after_the_end_and_over_a_restart_until_it_expires() -> None:
    with running_stack() as stack:
        async with stack.caller() as caller:
            token = await submit(caller, "echo kept")
            assert (await completed(caller, token))["stdout"] == "kept\n"
        stack.kill_server()
        stack.start_server()
        async with stack.caller() as caller:
            answer = await query(caller, token)
            assert (answer["status"], answer["stdout"], answer["exit_code"]) == (
                "completed",
                "kept\n",
                0,
            )
        stack.kill_server()
        stack.start_server(HOLDLINE_COMMAND_RETENTION_SECONDS="1", HOLDLINE_SWEEP_SECONDS="0.2")
        async with stack.caller() as caller:

            async def is_gone() -> bool:
                return bool((await query(caller, token))["status"] == "not_found")

            await await_until(is_gone, 90, "the output to expire")
            await await_until(
                lambda: stack.database.rows("SELECT count(*) FROM projects_outputchunk") == [(0,)],
                90,
                "its bytes to go",
            )
