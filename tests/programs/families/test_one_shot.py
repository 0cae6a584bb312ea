"""execute_command: a program from start to end in one call on pipes, or to its timeout."""

import json
import time
import uuid
from pathlib import Path

import pytest

from controller_client.protocol.codec import decode_from_controller, decode_from_server
from controller_client.protocol.messages import CommandResult, RunCommand
from tests.support.mcp.client import Caller
from tests.support.stack import PROJECT_ROOT, Stack
from tests.support.waiting import await_until


@pytest.mark.requirement("S1.R1.1", "S1.R1.2", "S1.R1.3", "S3.R4.1")
async def test_the_program_reads_its_input_to_the_end_and_both_streams_come_back(
    caller: Caller,
) -> None:
    result = await caller.call(
        "execute_command", command="sort; echo on stderr >&2; exit 3", input="b\nü\na\n"
    )
    assert (result["stdout"], result["stderr"]) == ("a\nb\nü\n", "on stderr\n")
    assert (result["success"], result["return_code"], result["timed_out"]) == (False, 3, False)
    assert isinstance(result["duration_ms"], int)


@pytest.mark.requirement("S1.R1.2")
async def test_a_program_without_input_reads_end_of_file_instead_of_waiting(caller: Caller) -> None:
    result = await caller.call("execute_command", command="cat; echo read to the end")
    assert (result["success"], result["stdout"]) == (True, "read to the end\n")


@pytest.mark.requirement("S1.R1.3", "S3.R4.1", "S3.V1.6")
async def test_output_comes_whole_from_plain_pipes(caller: Caller) -> None:
    result = await caller.call("execute_command", command="seq 1 100000; tty; seq 1 20000 >&2")
    assert (
        result["stdout"] == "".join(f"{number}\n" for number in range(1, 100_001)) + "not a tty\n"
    )
    assert result["stderr"] == "".join(f"{number}\n" for number in range(1, 20_001))
    assert result["truncated"] is False


@pytest.mark.requirement("S3.R4.1")
async def test_a_result_has_its_five_members(caller: Caller) -> None:
    result = await caller.call("execute_command", command="true")
    assert {name: result[name] for name in ("success", "stdout", "stderr", "return_code")} == {
        "success": True,
        "stdout": "",
        "stderr": "",
        "return_code": 0,
    }
    assert result["duration_ms"] >= 0


@pytest.mark.requirement("S1.R8.2", "S4.R7.3")
async def test_a_program_that_hangs_times_out_with_its_output_and_a_hint(
    caller: Caller, stack: Stack
) -> None:
    before = time.monotonic()
    # It does not read its empty input: it waits for something that never comes.
    command = "echo partial; echo warning >&2; (setsid sleep 1000 &); sleep 1000"
    result = await caller.call("execute_command", command=command, timeout_seconds=1)
    assert time.monotonic() - before < 30
    assert (result["success"], result["timed_out"], result["end_reason"]) == (
        False,
        True,
        "timed_out",
    )
    assert (result["stdout"], result["stderr"]) == ("partial\n", "warning\n")
    for text in (result["error"], result["hint"]):
        assert "start_command" in text
        assert "start_interactive_command" in text
    await await_until(
        lambda: not stack.program_pids(result["session_id"]), 90, "the whole tree to be gone"
    )


@pytest.mark.requirement("S1.R8.2")
async def test_a_one_shot_has_no_terminal_to_open_and_an_empty_input(caller: Caller) -> None:
    asked = await caller.call(
        "execute_command",
        command="read -p 'Name: ' name || echo nobody; echo to the terminal > /dev/tty",
    )
    assert asked["stdout"] == "nobody\n"
    assert asked["return_code"] != 0
    assert "/dev/tty" in asked["stderr"]


async def test_nothing_in_the_environment_asks_for_a_pager_or_for_colours(caller: Caller) -> None:
    result = await caller.call("execute_command", command="env")
    variables = dict(line.split("=", 1) for line in result["stdout"].splitlines())
    wanted = {
        "TERM": "dumb",
        "NO_COLOR": "1",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "LANG": "C.UTF-8",
    }
    assert {name: variables.get(name) for name in wanted} == wanted


async def test_a_repeated_call_runs_the_program_once(caller: Caller, tmp_path: Path) -> None:
    spawned, request = tmp_path / "spawned", str(uuid.uuid4())
    results = [
        await caller.call(
            "execute_command", command=f"echo $$ | tee -a {spawned}", request_id=request
        )
        for _ in range(3)
    ]
    assert len(spawned.read_text().splitlines()) == 1
    assert {result["stdout"] for result in results} == {spawned.read_text()}


async def test_a_program_that_cannot_be_started_is_an_error_with_a_code(caller: Caller) -> None:
    assert (await caller.refusal("execute_command", command="no-such-program-at-all"))[
        "code"
    ] == "PROGRAM_NOT_FOUND"


async def test_output_over_the_limit_is_shown_as_head_and_tail(caller: Caller) -> None:
    result = await caller.call("execute_command", command="seq 1 100000", max_output_bytes=4096)
    assert result["stdout"].startswith("1\n2\n3\n")
    assert result["stdout"].endswith("99999\n100000\n")
    assert (result["truncated"], result["success"]) == (True, True)
    shown = len(result["stdout"])
    assert shown < 5000
    whole = sum(len(f"{number}\n") for number in range(1, 100_001))
    assert 0 < whole - result["omitted_bytes"] <= 4096


@pytest.mark.requirement("S1.R8.1")
async def test_the_description_names_better_tools_for_other_tasks(caller: Caller) -> None:
    (tool,) = [
        tool for tool in (await caller.client.list_tools()).tools if tool.name == "execute_command"
    ]
    description = tool.description or ""
    assert "NOT for interactive" in description
    assert "NOT for long-running" in description
    assert "start_interactive_command" in description
    assert "start_command" in description


@pytest.mark.requirement("S3.R4.3")
async def test_a_one_shot_goes_to_the_host_as_run_command(caller: Caller, stack: Stack) -> None:
    result = await caller.call("execute_command", command="true")
    key = result["session_id"].replace("-", "")
    assert stack.database.rows(
        "SELECT type FROM projects_controllercommand WHERE session_id = ?", key
    ) == [("RUN_COMMAND",)]
    assert stack.database.session(result["session_id"], "kind", "io_mode") == ("one_shot", "pipe")


@pytest.mark.requirement("S3.R4.3")
def test_frames_of_one_shots_are_read_as_they_always_were() -> None:
    golden = [
        json.loads(line)
        for line in (PROJECT_ROOT / "tests/contract/protocol/v1/full.jsonl")
        .read_text()
        .splitlines()
    ]
    frames = {
        frame["type"]: json.dumps(frame)
        for frame in golden
        if frame["type"] in {"RUN_COMMAND", "COMMAND_RESULT"}
    }
    run, result = (
        decode_from_server.decode(frames["RUN_COMMAND"]),
        decode_from_controller.decode(frames["COMMAND_RESULT"]),
    )
    assert isinstance(run, RunCommand)
    assert isinstance(result, CommandResult)
