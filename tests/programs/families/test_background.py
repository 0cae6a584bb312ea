"""Background sessions: start_command, read_output, write_input and stop_command."""

import inspect
import re
import time
import uuid
from typing import Any

import pytest

from tests.support.mcp.client import Caller
from tests.support.processes import command_line, is_running
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until

LONG_WAIT_MS = 20_000


async def _read_to_end(caller: Caller, session_id: str) -> tuple[str, str, dict[str, Any]]:
    """Return the unread rest of both streams, and the last answer."""
    out = err = ""
    while True:
        answer = await caller.call("read_output", sessionId=session_id, timeout=LONG_WAIT_MS)
        out, err = out + answer["stdout"], err + answer["stderr"]
        if not answer["isActive"] and not answer["hasMore"]:
            return out, err, answer


# ---- start_command -------------------------------------------------------------------------------


@pytest.mark.requirement("S0.R1.1", "S0.R1.3", "S1.R2.1")
async def test_a_long_running_process_is_started_and_outlives_the_call(
    caller: Caller, stack: Stack
) -> None:
    before = time.monotonic()
    started = await caller.call("start_command", command="sleep 100")
    assert time.monotonic() - before < 10, "it must not wait for the program"
    assert set(started) == {"sessionId", "pid"}, "stdout and stderr come only with a timeout"
    assert uuid.UUID(started["sessionId"]).version == 4
    assert command_line(started["pid"]) == "sleep 100"
    async with stack.caller() as another:
        later = await another.call("read_output", sessionId=started["sessionId"])
        assert (later["stdout"], later["stderr"], later["isActive"]) == ("", "", True)
    assert (await caller.call("stop_command", sessionId=started["sessionId"]))["success"] is True


@pytest.mark.requirement("S0.R1.3", "S0.R2.3", "S0.R3.1", "S0.R4.2")
async def test_the_tools_take_and_return_what_they_are_specified_to(caller: Caller) -> None:
    tools = {tool.name: tool for tool in (await caller.client.list_tools()).tools}
    specified: dict[str, tuple[set[str], dict[str, Any], set[str]]] = {
        "start_command": (
            {"command"},
            {"cwd": None, "timeout": 0},
            {"sessionId", "pid", "stdout", "stderr"},
        ),
        "read_output": ({"sessionId"}, {"timeout": 0}, {"stdout", "stderr", "isActive"}),
        "write_input": ({"sessionId", "input"}, {}, {"success"}),
        "stop_command": ({"sessionId"}, {"signal": "SIGTERM"}, {"success"}),
    }
    for name, (required, optional, returned) in specified.items():
        schema = tools[name].input_schema
        assert set(schema["required"]) == required
        assert {
            argument: schema["properties"][argument]["default"] for argument in optional
        } == optional
        assert returned <= set((tools[name].output_schema or {})["properties"])


@pytest.mark.requirement("S0.R1.2", "S0.R1.3")
async def test_a_start_with_a_timeout_returns_the_first_output(caller: Caller) -> None:
    started = await caller.call("start_command", command="echo hello", timeout=LONG_WAIT_MS)
    assert started["stdout"] == "hello\n"
    assert started["stderr"] == ""
    assert isinstance(started["pid"], int)
    uuid.UUID(started["sessionId"])


@pytest.mark.requirement("S0.R1.2")
async def test_a_start_returns_once_its_first_output_is_there(caller: Caller) -> None:
    before = time.monotonic()
    started = await caller.call(
        "start_command", command="echo first; sleep 1000", timeout=LONG_WAIT_MS
    )
    assert started["stdout"] == "first\n"
    assert time.monotonic() - before < LONG_WAIT_MS / 1000
    await caller.call("stop_command", sessionId=started["sessionId"])


@pytest.mark.requirement("S0.R1.3")
async def test_a_command_starts_in_the_directory_that_was_named(caller: Caller) -> None:
    started = await caller.call(
        "start_command", command="pwd", cwd="/usr/lib", timeout=LONG_WAIT_MS
    )
    assert started["stdout"] == "/usr/lib\n"
    assert (await caller.refusal("start_command", command="pwd", cwd="/no/such/place"))[
        "code"
    ] == "CWD_NOT_FOUND"


# ---- read_output ---------------------------------------------------------------------------------


@pytest.mark.requirement("S0.R2.1")
async def test_a_read_returns_what_was_printed_and_whether_it_still_runs(
    caller: Caller, stack: Stack
) -> None:
    started = await caller.call("start_command", command='echo "hello"')
    await await_until(lambda: stack.database.state(started["sessionId"]) == "EXITED", 90, "its end")
    answer = await caller.call("read_output", sessionId=started["sessionId"])
    assert "hello\n" in answer["stdout"]
    assert (answer["isActive"], answer["exitCode"]) == (False, 0)
    running = await caller.call(
        "start_command", command='echo "hello"; sleep 1000', timeout=LONG_WAIT_MS
    )
    assert (await caller.call("read_output", sessionId=running["sessionId"]))["isActive"] is True
    await caller.call("stop_command", sessionId=running["sessionId"])


@pytest.mark.requirement("S0.R2.2")
async def test_a_long_poll_returns_with_the_output_it_waited_for(caller: Caller) -> None:
    started = await caller.call("start_command", command='sleep 1 && echo "done"')
    # Empty, unless the machine slept for longer than the program.
    at_once = await caller.call("read_output", sessionId=started["sessionId"])
    answer = await caller.call("read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS)
    assert at_once["stdout"] + answer["stdout"] == "done\n"


@pytest.mark.requirement("S0.R2.2")
async def test_a_long_poll_returns_as_soon_as_output_comes(caller: Caller) -> None:
    started = await caller.call("start_command", command="read go; echo answer; sleep 1000")
    await caller.call("write_input", sessionId=started["sessionId"], input="go\n")
    before = time.monotonic()
    answer = await caller.call("read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS)
    assert (answer["stdout"], answer["isActive"]) == ("answer\n", True)
    assert time.monotonic() - before < LONG_WAIT_MS / 1000
    await caller.call("stop_command", sessionId=started["sessionId"])


@pytest.mark.requirement("S0.R2.2")
async def test_a_long_poll_of_a_silent_program_returns_empty_at_its_timeout(caller: Caller) -> None:
    started = await caller.call("start_command", command="sleep 1000")
    before = time.monotonic()
    answer = await caller.call("read_output", sessionId=started["sessionId"], timeout=300)
    assert time.monotonic() - before >= 0.3
    assert (answer["stdout"], answer["stderr"], answer["isActive"]) == ("", "", True)
    await caller.call("stop_command", sessionId=started["sessionId"])


@pytest.mark.requirement("S0.R2.3", "S1.R3.1")
async def test_each_read_returns_both_streams_from_where_the_last_one_ended(caller: Caller) -> None:
    command = "while read line; do echo out $line; echo err $line >&2; done"
    started = await caller.call("start_command", command=command)
    for word in ("one", "two"):
        await caller.call("write_input", sessionId=started["sessionId"], input=f"{word}\n")
        out = err = ""
        while not (out and err):
            answer = await caller.call(
                "read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS
            )
            out, err = out + answer["stdout"], err + answer["stderr"]
        assert (out, err) == (f"out {word}\n", f"err {word}\n")
    await caller.call("write_input", sessionId=started["sessionId"], input="", eof=True)
    assert (await _read_to_end(caller, started["sessionId"]))[:2] == ("", "")


@pytest.mark.requirement("S0.R2.3", "S1.R3.1")
async def test_each_caller_reads_all_output_and_a_retry_repeats_a_lost_reply(
    caller: Caller, stack: Stack
) -> None:
    started = await caller.call("start_command", command="cat")
    session_id = started["sessionId"]
    await caller.call("write_input", sessionId=session_id, input="kept\n")
    asked = str(uuid.uuid4())
    first = await caller.call(
        "read_output", sessionId=session_id, timeout=LONG_WAIT_MS, requestId=asked
    )
    again = await caller.call("read_output", sessionId=session_id, requestId=asked)
    assert first["stdout"] == again["stdout"] == "kept\n"
    async with stack.caller(stack.provisioned.reader_token) as reader:
        assert (await reader.call("read_output", sessionId=session_id))["stdout"] == "kept\n"
    assert (await caller.call("read_output", sessionId=session_id))["stdout"] == ""
    await caller.call("stop_command", sessionId=session_id)


@pytest.mark.requirement("S0.R2.3", "S4.R1.3", "S4.R1.4")
async def test_megabytes_read_in_parts_are_whole_and_split_no_character(caller: Caller) -> None:
    lines = 120_000
    started = await caller.call(
        "start_command",
        command=f"seq -f 'зеркало %.0f' 1 {lines}; seq -f 'fehler ü%.0f' 1 50000 >&2",
    )
    out, err, end = await _read_to_end(caller, started["sessionId"])
    assert out == "".join(f"зеркало {number}\n" for number in range(1, lines + 1))
    assert err == "".join(f"fehler ü{number}\n" for number in range(1, 50_001))
    assert end["exitCode"] == 0


@pytest.mark.requirement("S4.R1.4")
async def test_both_streams_can_be_seen_in_the_order_they_were_printed(caller: Caller) -> None:
    started = await caller.call(
        "start_command", command="while read x; do echo out$x; echo err$x >&2; done"
    )
    session_id = started["sessionId"]
    for turn in ("1", "2", "3"):
        await caller.call("write_input", sessionId=session_id, input=f"{turn}\n")
        seen = ""
        while f"out{turn}" not in seen or f"err{turn}" not in seen:
            answer = await caller.call("read_output", sessionId=session_id, timeout=LONG_WAIT_MS)
            assert answer["isActive"]
            seen += answer["stdout"] + answer["stderr"]
    assert "in_order" not in await caller.call("get_session", session_id=session_id)
    pieces = (await caller.call("get_session", session_id=session_id, ordered_bytes=1000))[
        "in_order"
    ]
    words = [word for piece in pieces for word in piece["text"].split()]
    assert [word[3:] for word in words] == ["1", "1", "2", "2", "3", "3"]
    assert all(
        word.startswith(piece["stream"][3:]) for piece in pieces for word in piece["text"].split()
    )
    await caller.call("stop_command", sessionId=session_id)


# ---- write_input ---------------------------------------------------------------------------------


@pytest.mark.requirement("S0.R3.1")
async def test_written_input_reaches_the_program_unchanged(caller: Caller) -> None:
    started = await caller.call("start_command", command="cat")
    written = await caller.call("write_input", sessionId=started["sessionId"], input="data\n")
    assert written["success"] is True
    answer = await caller.call("read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS)
    assert answer["stdout"] == "data\n"
    await caller.call("write_input", sessionId=started["sessionId"], input="no line end", eof=True)
    out, _, end = await _read_to_end(caller, started["sessionId"])
    assert (out, end["exitCode"]) == ("no line end", 0)


@pytest.mark.requirement("S0.R3.1")
async def test_a_repeated_write_is_written_once(caller: Caller) -> None:
    started = await caller.call("start_command", command="cat")
    for _ in range(3):
        same = "1b4e28ba-2fa1-4d2a-883f-0016d3cca427"
        answer = await caller.call(
            "write_input", sessionId=started["sessionId"], input="once\n", requestId=same
        )
        assert answer["success"] is True
    await caller.call("write_input", sessionId=started["sessionId"], input="", eof=True)
    assert (await _read_to_end(caller, started["sessionId"]))[0] == "once\n"


async def test_writing_to_a_program_that_is_over_is_refused(caller: Caller) -> None:
    started = await caller.call("start_command", command="true", timeout=LONG_WAIT_MS)
    await _read_to_end(caller, started["sessionId"])
    assert (await caller.refusal("write_input", sessionId=started["sessionId"], input="x\n"))[
        "code"
    ] == "SESSION_ENDED"


# ---- stop_command --------------------------------------------------------------------------------


@pytest.mark.requirement("S0.R4.1", "S0.R4.2", "S1.R4.1")
async def test_a_running_process_is_terminated(caller: Caller, stack: Stack) -> None:
    started = await caller.call("start_command", command="sleep 100")
    assert is_running(started["pid"])
    assert (await caller.call("stop_command", sessionId=started["sessionId"]))["success"] is True
    await await_until(lambda: not is_running(started["pid"]), 90, "the process to be gone")
    _, _, end = await _read_to_end(caller, started["sessionId"])
    assert (end["isActive"], end["signal"], end["endReason"]) == (False, "SIGTERM", "terminated")
    assert end["endedBy"].startswith("token:")
    await await_until(
        lambda: not stack.program_pids(started["sessionId"]), 90, "its tree to be gone"
    )
    assert (await caller.call("stop_command", sessionId=started["sessionId"]))["success"] is False


@pytest.mark.requirement("S0.R4.2")
@pytest.mark.parametrize("name", ["SIGINT", "HUP", "usr1", "12"])
async def test_any_signal_can_be_sent_by_name_or_number_once(caller: Caller, name: str) -> None:
    traps = "; ".join(
        f"trap 'echo got {number}' {number}" for number in ("INT", "HUP", "USR1", "USR2")
    )
    started = await caller.call(
        "start_command",
        command=f"{traps}; echo ready; while :; do sleep 0.05; done",
        timeout=LONG_WAIT_MS,
    )
    assert started["stdout"] == "ready\n"
    ended = await caller.call("stop_command", sessionId=started["sessionId"], signal=name)
    assert ended["success"] is True
    expected = {"SIGINT": "INT", "HUP": "HUP", "usr1": "USR1", "12": "USR2"}[name]
    told = ""
    # The signal ends ``sleep`` too, and the shell may say so on its standard error first.
    while "got" not in told:
        answer = await caller.call(
            "read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS
        )
        assert answer["isActive"]
        told += answer["stdout"]
    assert told == f"got {expected}\n"
    assert (await caller.call("stop_command", sessionId=started["sessionId"], signal="SIGKILL"))[
        "success"
    ] is True
    assert (await _read_to_end(caller, started["sessionId"]))[2]["signal"] == "SIGKILL"


@pytest.mark.requirement("S0.R4.2")
async def test_an_unknown_signal_is_refused_with_a_list_of_the_known_ones(caller: Caller) -> None:
    started = await caller.call("start_command", command="sleep 100")
    body = await caller.refusal("stop_command", sessionId=started["sessionId"], signal="SIGWHAT")
    assert body["code"] == "UNKNOWN_SIGNAL"
    assert "SIGWHAT" in body["error"]
    assert re.search(r"\bSIGHUP\b", body["hint"])
    assert is_running(started["pid"])
    await caller.call("stop_command", sessionId=started["sessionId"])


@pytest.mark.requirement("S0.R4.1")
async def test_a_process_tree_that_ignores_sigterm_is_killed_after_its_grace(
    caller: Caller, stack: Stack
) -> None:
    command = (
        "trap '' TERM; (trap '' TERM HUP; setsid sleep 1000 &); echo ready; while :; do sleep "
        "1; done"
    )
    started = await caller.call("start_command", command=command, timeout=LONG_WAIT_MS)
    assert (await caller.call("stop_command", sessionId=started["sessionId"]))["success"] is True
    assert (await _read_to_end(caller, started["sessionId"]))[2]["signal"] == "SIGKILL"
    await await_until(
        lambda: not stack.program_pids(started["sessionId"]), 90, "the whole tree to be gone"
    )


# ---- many, and abandoned ones --------------------------------------------------------------------

_FEW = {
    "MAX_BACKGROUND_SESSIONS": "3",
    "HOLDLINE_BACKGROUND_IDLE_SECONDS": "12",
    "HOLDLINE_SWEEP_SECONDS": "0.2",
}


@pytest.mark.requirement("S1.R4.1")
async def test_a_session_over_the_limit_is_refused_until_abandoned_ones_end() -> None:
    with running_stack(server_environment=_FEW) as stack:
        async with stack.caller() as caller:
            sessions = [
                await caller.call("start_command", command=f"echo {number}; sleep 1000")
                for number in range(3)
            ]
            body = await caller.refusal("start_command", command="true")
            assert body["code"] == "SESSION_LIMIT_REACHED"
            assert "3" in body["error"]
            assert "stop_command" in body["hint"]
            kept, *abandoned = (started["sessionId"] for started in sessions)

            async def are_reaped() -> bool:
                await caller.call("read_output", sessionId=kept)
                return {stack.database.state(session_id) for session_id in abandoned} == {
                    "TERMINATED"
                }

            await await_until(are_reaped, 90, "those that nobody asks for to be ended")
            for number, session_id in enumerate(abandoned, 1):
                answer = await caller.call("read_output", sessionId=session_id)
                assert (answer["stdout"], answer["isActive"], answer["endedBy"]) == (
                    f"{number}\n",
                    False,
                    "idle",
                )
                assert (await caller.call("get_session", session_id=session_id))[
                    "ended_by"
                ] == "idle"
                assert not stack.program_pids(session_id)
            assert (await caller.call("read_output", sessionId=kept))["isActive"] is True, (
                "one that is asked for stays"
            )
            assert (await caller.call("start_command", command="echo room", timeout=LONG_WAIT_MS))[
                "stdout"
            ] == "room\n"


@pytest.mark.requirement("S1.R4.1")
async def test_a_session_ends_with_its_lifetime_and_says_so(caller: Caller) -> None:
    started = await caller.call("start_command", command="echo begun; sleep 1000", lifetime=1000)
    out, _, end = await _read_to_end(caller, started["sessionId"])
    assert (out, end["endReason"], end["endedBy"]) == ("begun\n", "timed_out", "lifetime")


def test_services_know_no_camel_case_and_no_milliseconds() -> None:
    from projects.sessions import background

    for name, member in vars(background).items():
        if inspect.isfunction(member) and member.__module__ == background.__name__:
            assert not [
                parameter
                for parameter in inspect.signature(member).parameters
                if re.search(r"[A-Z]|_ms$|^timeout$", parameter)
            ], name
