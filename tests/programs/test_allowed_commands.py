"""Allowed commands (sleep, echo) and directories hold for every way to run a command.

Some attempts only the host can see through, such as a link with the name of an allowed program.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.messages import RunCommand, Started, StartInteractiveCmd
from tests.support.hosts.daemon_process import DaemonProcess, daemon_process
from tests.support.hosts.scripted_server import ScriptedServer, scripted_server
from tests.support.mcp.client import Caller
from tests.support.stack import Stack, deployed

STARTING = ("start_interactive_command", "execute_command", "start_command", "run_command")
REFUSED = {
    "echo $(id)": "$(id)",
    "echo a; id": "id",
    "echo a\nid": "id",
    "sleep 1 & id": "&",
    "env id": "env",
    "/tmp/echo": "/tmp/echo",
}


def _lying_policy(state_dir: Path, lies: Path, allowed: str = "") -> None:
    """On this host's path, echo is a link to another program."""
    lies.mkdir()
    (lies / "echo").symlink_to("/usr/bin/id")
    policy = state_dir / "policy.toml"
    policy.touch(mode=0o600)
    policy.write_text(f'[commands]\nsearch_path = ["{lies}", "/usr/bin", "/bin"]\n{allowed}')


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    stack = deployed()(
        server_environment={"ALLOWED_COMMANDS": "sleep,echo", "ALLOWED_DIRECTORIES": "/usr,/tmp"}
    )
    try:
        yield stack.start()
    finally:
        stack.stop()


@pytest.mark.requirement("S0.R1.1", "S0.R2.2")
async def test_listed_commands_run_by_every_tool(caller: Caller) -> None:
    line = "sleep 0.1 && echo done"
    assert (await (await caller.start(line)).until("exited"))["output"] == "done\n"
    assert (await caller.call("execute_command", command=line))["stdout"] == "done\n"
    assert (await caller.call("start_command", command=line, timeout=20_000))["stdout"] == "done\n"
    started = await caller.call("start_command", command="sleep 1 && echo done")
    assert (await caller.call("read_output", sessionId=started["sessionId"], timeout=20_000))[
        "stdout"
    ] == "done\n"
    assert (await caller.call("run_command", command=line))["status"] == "pending"


@pytest.mark.parametrize("command", REFUSED, ids=ascii)
@pytest.mark.parametrize("tool", STARTING)
async def test_any_other_command_is_refused_by_its_part_and_creates_no_session(
    caller: Caller, stack: Stack, tool: str, command: str
) -> None:
    before = stack.database.rows("SELECT count(*) FROM projects_commandsession")
    body = await caller.refusal(tool, command=command)
    assert body["code"] == "COMMAND_NOT_ALLOWED"
    assert REFUSED[command] in body["error"]
    assert stack.database.rows("SELECT count(*) FROM projects_commandsession") == before


@pytest.mark.requirement("S1.R5.1")
@pytest.mark.parametrize("tool", STARTING)
async def test_the_directories_of_one_tool_are_those_of_all(
    caller: Caller, stack: Stack, tool: str
) -> None:
    link = stack.root / f"out-{tool}"
    link.symlink_to("/etc")
    name = "working_directory" if tool == "run_command" else "cwd"
    for directory in ("/etc", "/usr/../etc"):
        arguments: dict[str, Any] = {"command": "echo a", name: directory}
        assert (await caller.refusal(tool, **arguments))["code"] == "CWD_NOT_ALLOWED"
    await caller.call(tool, command="echo a", **{name: "/usr/lib"})
    if tool != "run_command":
        assert (await caller.refusal(tool, command="echo a", cwd=str(link)))[
            "code"
        ] == "CWD_NOT_ALLOWED", "only the host can know"


async def test_the_host_refuses_a_link_that_borrows_an_allowed_programs_name() -> None:
    stack = deployed()(server_environment={"ALLOWED_COMMANDS": "sleep,echo"})
    try:
        _lying_policy(stack.state_dir, stack.root / "lies")
        stack.start()
        async with stack.caller() as caller:
            for tool in ("start_interactive_command", "execute_command", "start_command"):
                body = await caller.refusal(tool, command="echo a")
                assert body["code"] == "COMMAND_NOT_ALLOWED"
                assert "'echo'" in body["error"]
                assert "/usr/bin/id" in body["error"]
    finally:
        stack.stop()


@pytest.fixture
async def lone_host(tmp_path: Path) -> AsyncIterator[tuple[ScriptedServer, DaemonProcess]]:
    """A daemon with the same list in its own policy file, and a server that checks nothing."""
    (tmp_path / "state").mkdir(mode=0o700)
    _lying_policy(tmp_path / "state", tmp_path / "lies", 'allowed = ["sleep", "echo"]\n')
    async with scripted_server() as server, daemon_process(tmp_path, server.url) as daemon:
        await server.connected()
        yield server, daemon


async def _answer(server: ScriptedServer, start: StartInteractiveCmd | RunCommand) -> Started:
    server.transcript(start.session_id)
    await server.send(start)
    return await server.wait_for(Started, lambda message: message.session_id == start.session_id)


async def test_the_daemon_alone_refuses_the_same_commands_of_every_kind(
    lone_host: tuple[ScriptedServer, DaemonProcess],
) -> None:
    server, daemon = lone_host
    lied_to = {**REFUSED, "echo a": "echo", "sleep 1 && echo done": "echo"}
    for command, part in lied_to.items():
        for start in (
            RunCommand(seq=1, session_id=str(uuid4()), command=command),
            StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command, io_mode="pipe"),
            StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command),
        ):
            started = await _answer(server, start)
            assert started.failure is not None
            assert (started.failure.code, part in started.failure.message) == (
                "COMMAND_NOT_ALLOWED",
                True,
            ), (command, started.failure)
    assert daemon.sessions() == []
    assert (
        await _answer(
            server, StartInteractiveCmd(seq=1, session_id=str(uuid4()), command="sleep 0.1")
        )
    ).failure is None
