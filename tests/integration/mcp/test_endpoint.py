"""The tools as an MCP client sees them, in both eras of the protocol; no read consumes."""

import pytest

from tests.support.stack import Stack

_TOOLS = {
    *("start_interactive_command", "send_command_input"),
    *("list_controllers", "list_sessions", "get_session", "read_session_output", "resize_session"),
}


@pytest.mark.requirement("S3.R5.1", "S3.R4.2")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_eras_of_the_protocol_list_the_tools_and_hold_a_session(
    stack: Stack, mode: str
) -> None:
    async with stack.caller(mode=mode) as caller:
        listed = await caller.client.list_tools()
        assert {tool.name for tool in listed.tools} >= _TOOLS
        assert all(tool.output_schema and tool.description for tool in listed.tools)
        async with caller.terminal("cat") as session:
            await session.send("echo\n")
            assert session.result["output"].splitlines() == ["echo", "echo"]


@pytest.mark.requirement("S4.R5.1", "S4.R5.2", "S4.R5.3", "S4.R5.4", "S1.R3.1", "S4.R1.1")
async def test_a_read_names_an_offset_and_consumes_nothing(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal("cat") as session:
        await session.send("abc\n")

        async def read(**arguments: object) -> dict[str, object]:
            return await caller.call(
                "read_session_output", session_id=session.session_id, **arguments
            )

        whole = await read()
        assert whole["output"] == "abc\nabc\n"
        assert await read() == whole
        assert whole["next_offset"] == whole["total_bytes"] == len("abc\r\nabc\r\n")
        assert (await read(offset=5))["output"] == "abc\n"
        past = await read(offset=10_000)
        assert past["output"] == ""
        await session.send("more\n")
        assert (await read(offset=whole["next_offset"]))["output"] == "more\nmore\n"


async def test_what_was_printed_between_two_calls_is_shown_by_the_next_one(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            "bash -c 'for i in 1 2 3 4 5 6; do echo tick $i; sleep 0.2; done'", wait_seconds=0.5
        )
        await session.until("exited")
        assert session.seen.split("\n")[:6] == [f"tick {number}" for number in range(1, 7)]


async def test_lists_and_receipts(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("bash -c 'exit 4'")
        await session.until("exited")
        listed = await caller.call("list_sessions")
        assert session.session_id in str(listed)
        receipt = await caller.call("get_session", session_id=session.session_id)
        assert (receipt["state"], receipt["exit_code"], receipt["end_reason"]) == (
            "exited",
            4,
            "exited",
        )
        controllers = await caller.call("list_controllers")
        assert stack.provisioned.controller in str(controllers)


@pytest.mark.requirement(
    "S3.P1.1", "S3.P1.2", "S3.P1.3", "S3.C1.1", "S3.R1.3", "S3.C1.4", "S4.R1.3", "S4.R1.4"
)
async def test_a_flood_of_output_arrives_whole_in_order_in_bounded_chunks(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("seq 1 200000", wait_seconds=30, max_output_bytes=4096)
        await session.until("exited", 60)
        expected = "".join(f"{number}\r\n" for number in range(1, 200001)).encode()
        assert stack.database.transcript(session.session_id) == expected
        assert (
            max(end - start for start, end, _ in stack.database.extents(session.session_id))
            <= 64 * 1024
        )
        await stack.database.await_verified(session.session_id)


async def test_an_idle_session_keeps_its_connection_and_takes_input_later(stack: Stack) -> None:
    async with (
        stack.caller() as caller,
        caller.terminal("bash -c 'read x; sleep 1.5; echo late $x'") as session,
    ):
        await session.send("ada\n", wait_seconds=0)
        assert session.result["state"] in {"running", "awaiting_input"}
        await session.until("exited")
        assert "late ada" in session.seen


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_both_eras_hear_how_far_a_program_is_while_their_call_waits(
    stack: Stack, mode: str
) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with stack.caller(mode=mode) as caller:
        answer = await caller.client.call_tool(
            "start_interactive_command",
            {"command": "bash -c 'echo abc; exec sleep 60'", "wait_seconds": 8},
            progress_callback=hear,
        )
        assert answer.structured_content is not None
        assert answer.structured_content["state"] == "running"
        await caller.call(
            "send_command_input", session_id=answer.structured_content["session_id"], terminate=True
        )
    assert heard
    assert [total for _, total, _ in heard] == [8.0] * len(heard)
    assert heard[-1][2] == "running, 5 bytes of output so far"
