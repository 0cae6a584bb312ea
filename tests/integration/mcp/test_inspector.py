"""The Inspector's command line: it finds nothing wrong with the tools, and calls each of them, over
HTTP and through the bridge.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from projects.tools.registry import ALL_TOOLS
from tests.support.mcp.inspector import Outcome, command_line, connection
from tests.support.mcp.node_packages import NodePackages
from tests.support.stack import Stack

ROOT = Path(__file__).resolve().parents[3]
BRIDGE = (sys.executable, "-m", "mcp_bridge")
TOOL_ERROR = 5
Call = Callable[[str, dict[str, Any]], Outcome]


def over_http(stack: Stack) -> tuple[str, ...]:
    return (
        stack.url,
        "--transport",
        "http",
        "--header",
        f"Authorization: Bearer {stack.provisioned.token}",
    )


def bridge_environment(stack: Stack) -> dict[str, str]:
    return {"HOLDLINE_URL": stack.url, "HOLDLINE_TOKEN": stack.provisioned.token}


def through_bridge(stack: Stack) -> tuple[str, ...]:
    variables = (
        part
        for name, value in bridge_environment(stack).items()
        for part in ("-e", f"{name}={value}")
    )
    return (*BRIDGE, "--transport", "stdio", "--cwd", str(ROOT), *variables)


@pytest.mark.parametrize("target", [over_http, through_bridge])
def test_the_strict_list_is_clean(
    stack: Stack, node_packages: NodePackages, target: Callable[[Stack], tuple[str, ...]]
) -> None:
    with command_line(node_packages) as inspector:
        listed = inspector.run(
            *target(stack),
            "--connect-timeout",
            "120000",
            "--format",
            "json",
            "--method",
            "tools/list",
            "--strict",
        )
    assert (listed.code, "schemaFindings" in listed.stdout) == (0, False), listed.stderr
    assert [tool["name"] for tool in listed.result["tools"]] == [tool.name for tool in ALL_TOOLS]


@contextmanager
def calling_over_http(stack: Stack, packages: NodePackages) -> Iterator[Call]:
    with command_line(packages) as inspector:
        yield lambda tool, arguments: inspector.run(
            *over_http(stack),
            *(
                "--format",
                "json",
                "--method",
                "tools/call",
                "--tool-name",
                tool,
                "--tool-args-json",
                json.dumps(arguments),
            ),
        )


@contextmanager
def calling_through_the_bridge(stack: Stack, packages: NodePackages) -> Iterator[Call]:
    with connection(packages, BRIDGE, bridge_environment(stack), ROOT) as inspector:
        yield lambda tool, arguments: inspector.run(
            *(
                "--format",
                "json",
                "--connection",
                "server",
                "tools/call",
                tool,
                "--tool-args-json",
                json.dumps(arguments),
            )
        )


@pytest.mark.parametrize("calling", [calling_over_http, calling_through_the_bridge])
def test_every_tool_is_called_once_well_and_once_badly(
    stack: Stack, node_packages: NodePackages, calling: Any
) -> None:
    called: set[str] = set()
    refused: set[str] = set()
    with calling(stack, node_packages) as call:

        def well(tool: str, **arguments: Any) -> dict[str, Any]:
            said = call(tool, arguments)
            assert said.code == 0, f"{tool}: {said.stdout}{said.stderr}"
            called.add(tool)
            structured: dict[str, Any] = said.result["structuredContent"]
            return structured

        def badly(tool: str, code: str, **arguments: Any) -> None:
            said = call(tool, arguments)
            assert said.code == TOOL_ERROR, f"{tool}: {said.stdout}{said.stderr}"
            assert (
                said.result["_meta"]["holdline/error"]["code"],
                "structuredContent" in said.result,
            ) == (code, False)
            refused.add(tool)

        _one_shot_and_terminal(well, badly)
        _background_and_job(well, badly)
        _monitor(well, badly, stack.log_root)
    assert called == refused == {tool.name for tool in ALL_TOOLS}


Well = Callable[..., dict[str, Any]]
Badly = Callable[..., None]


def _one_shot_and_terminal(well: Well, badly: Badly) -> None:
    assert well("execute_command", command="echo hi")["stdout"] == "hi\n"
    badly("execute_command", "INVALID_ARGUMENT", command=7)
    session_id = well("start_interactive_command", command="cat")["session_id"]
    badly("start_interactive_command", "INVALID_ARGUMENT")
    assert "ada" in well("send_command_input", session_id=session_id, input_text="ada\n")["output"]
    badly("send_command_input", "INVALID_ARGUMENT", session_id=session_id, wait_seconds=31)
    well("resize_session", session_id=session_id, rows=30, cols=100)
    badly("resize_session", "INVALID_ARGUMENT", session_id=session_id, rows=0, cols=100)
    assert "ada" in well("read_session_output", session_id=session_id)["output"]
    badly("read_session_output", "INVALID_ARGUMENT", session_id=session_id, offset=-1)
    well("search_session_output", pattern="ada")
    badly("search_session_output", "INVALID_PATTERN", pattern="(")
    assert well("get_session", session_id=session_id)["session_id"] == session_id
    badly("get_session", "SESSION_NOT_FOUND", session_id=str(uuid4()))
    assert session_id in str(well("list_sessions", active_only=True))
    badly("list_sessions", "INVALID_ARGUMENT", limit=1000)
    assert well("list_controllers")["controllers"]
    badly("list_controllers", "UNKNOWN_ARGUMENT", name="host")
    assert well("send_command_input", session_id=session_id, terminate=True)["state"] == "exited"


def _background_and_job(well: Well, badly: Badly) -> None:
    session = {"sessionId": well("start_command", command="cat")["sessionId"]}
    badly("start_command", "EMPTY_COMMAND", command="")
    well("write_input", **session, input="ada\n")
    badly("write_input", "INVALID_ARGUMENT", **session)
    assert well("read_output", **session, timeout=20_000)["stdout"] == "ada\n"
    badly("read_output", "INVALID_ARGUMENT", **session, timeout=-1)
    badly("stop_command", "UNKNOWN_SIGNAL", **session, signal="SIGNONE")
    well("stop_command", **session)
    token = well("run_command", command="true")["token"]
    badly("run_command", "INVALID_ARGUMENT", command="true", timeout=0)
    assert well("query_command_status", token=token)["token"] == token
    badly("query_command_status", "INVALID_ARGUMENT", token=token, stdout_offset=-1)


def _monitor(well: Well, badly: Badly, log_root: Path) -> None:
    log, session = log_root / f"{uuid4()}.log", {"session_id": str(uuid4())}
    log.write_text("one\n")
    well("start_session_monitor", **session, session_type="file", log_file=str(log))
    badly(
        "start_session_monitor",
        "INVALID_ARGUMENT",
        **session,
        session_type="tape",
        log_file=str(log),
    )
    assert "one" in well("get_session_updates", **session)["new_content"]
    badly("get_session_updates", "INVALID_ARGUMENT", **session, wait_seconds=31)
    assert session["session_id"] in str(well("list_session_monitors"))
    badly("list_session_monitors", "UNKNOWN_ARGUMENT", name="log")
    badly("stop_session_monitor", "INVALID_ARGUMENT", session_id="none", save_log=3)
    well("stop_session_monitor", **session)
