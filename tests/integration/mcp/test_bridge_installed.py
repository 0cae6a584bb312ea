"""``holdline-mcp`` as a distribution of its own: installed where nothing else of the project is,
and kept running by its client.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import requires
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.installs.wheels import build_wheel, install
from tests.support.mcp.client import Caller
from tests.support.ports import free_port
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until

SOURCE = Path(__file__).resolve().parents[3] / "mcp_bridge"
UNAVAILABLE = 69
_SECONDS = 120


def everything_below(name: str) -> set[str]:
    """A distribution and all it needs on this machine, also for the extras it asks of others."""
    found: set[tuple[str, str]] = set()
    wanted = {(name, "")}
    while wanted:
        found.add(of := wanted.pop())
        needed = [
            one
            for one in map(Requirement, requires(of[0]) or ())
            if one.marker is None or one.marker.evaluate({"extra": of[1]})
        ]
        wanted |= {
            (canonicalize_name(one.name), extra) for one in needed for extra in ("", *one.extras)
        } - found
    return {name for name, _ in found}


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of commands of an environment with the bridge alone."""
    directory = tmp_path_factory.mktemp("bridge")
    return install(
        build_wheel(SOURCE, directory), directory / "environment", everything_below("mcp")
    )


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    """A stack whose server may be killed."""
    with running_stack() as stack:
        yield stack


def environment_of(url: str, token: str) -> dict[str, str]:
    return {"PATH": os.defpath, "HOLDLINE_URL": url, "HOLDLINE_TOKEN": token}


@asynccontextmanager
async def bridged(commands: Path, stack: Stack, cwd: Path) -> AsyncIterator[Caller]:
    environment = environment_of(stack.url, stack.provisioned.token)
    parameters = StdioServerParameters(
        command=str(commands / "holdline-mcp"), args=[], env=environment, cwd=cwd
    )
    async with Client(stdio_client(parameters)) as client:
        yield Caller(client)


async def test_alone_in_its_environment_it_holds_a_whole_session(
    commands: Path, own_stack: Stack, tmp_path: Path
) -> None:
    others = (
        "import importlib.util; print([name for name in ('django', 'channels', 'projects') if "
        "importlib.util.find_spec(name)])"
    )
    absent = await asyncio.to_thread(
        subprocess.check_output, [commands / "python", "-c", others], cwd=tmp_path, text=True
    )
    assert absent.strip() == "[]"
    async with bridged(commands, own_stack, tmp_path) as caller:
        async with caller.terminal("bash -c 'read -p \"Name: \" x; echo hello $x'") as session:
            assert session.result["prompt"]["text"] == "Name: "
            await session.send("Ada\n")
            await session.until("exited")
        assert "hello Ada" in session.seen
        assert (
            await caller.refusal(
                "send_command_input", session_id=session.session_id, input_text="x"
            )
        )["code"] == "SESSION_ENDED"


@pytest.mark.parametrize("wrong", ["server", "token"])
def test_without_a_server_or_a_token_it_ends_with_one_line(
    commands: Path, own_stack: Stack, wrong: str, tmp_path: Path
) -> None:
    token = "hl_0123456789abcdef_" + "A" * 43
    url = own_stack.url if wrong == "token" else f"http://127.0.0.1:{free_port()}/mcp"
    ended = subprocess.run(
        [commands / "holdline-mcp"],
        env=environment_of(url, token),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (UNAVAILABLE, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"holdline-mcp: {url} failed: ")
    assert token not in line


async def test_a_server_restart_fails_the_call_under_way_but_not_the_bridge(
    commands: Path,
    own_stack: Stack,
    tmp_path: Path,
) -> None:
    stack = own_stack
    async with bridged(commands, stack, tmp_path) as caller:
        session = await caller.start("bash -c 'read x; sleep 1; echo got $x; read y'")
        waiting = asyncio.create_task(session.send("once\n", wait_for="never", wait_seconds=30))
        await await_until(
            lambda: b"once" in stack.database.transcript(session.session_id),
            _SECONDS,
            "the input to be typed",
        )
        stack.kill_server()
        async with asyncio.timeout(_SECONDS):
            with pytest.raises(MCPError):
                await waiting
            # While it is away every call says so.
            with pytest.raises(MCPError):
                await caller.call("list_controllers")
        stack.start_server()
        await session.until("awaiting_input", _SECONDS)
        await session.until_output("got once", _SECONDS)
        assert stack.database.transcript(session.session_id).count(b"got once") == 1
        assert (await session.terminate())["state"] == "exited"
