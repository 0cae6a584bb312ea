"""The tools over stdio: ``holdline-mcp`` as a client starts it, in both eras of the protocol."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from mcp_bridge.cli import UNAVAILABLE
from projects.errors.access import Unauthenticated
from tests.support.mcp.client import Caller
from tests.support.stack import Stack

ROOT = Path(__file__).resolve().parents[3]


@asynccontextmanager
async def bridged(
    stack: Stack, *arguments: str, mode: str = "auto", token: str | None = None
) -> AsyncIterator[Caller]:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "mcp_bridge", *arguments],
        env={"HOLDLINE_URL": stack.url, "HOLDLINE_TOKEN": token or stack.provisioned.token},
        cwd=ROOT,
    )
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield Caller(client)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_whole_session_is_held_over_stdio(stack: Stack, mode: str) -> None:
    heard: list[str | None] = []

    async def hear(_progress: float, _total: float | None, message: str | None) -> None:
        heard.append(message)

    async with bridged(stack, mode=mode) as caller, stack.caller() as direct:
        assert caller.client.instructions == direct.client.instructions
        assert await _names(caller) == await _names(direct)
        async with caller.terminal("cat") as session:
            await session.send('{"a": 1}\n')
            assert session.result["output"].splitlines() == ['{"a": 1}', '{"a": 1}']
            (resource, *_) = (await caller.client.list_resources()).resources
            read = await caller.client.read_resource(resource.uri)
            assert session.session_id in resource.uri
            assert '{"a": 1}' in str(read.contents[0])
        refused = await caller.refusal(
            "get_session", session_id="00000000-0000-4000-8000-000000000000"
        )
        assert refused["code"] == "SESSION_NOT_FOUND"
        with pytest.raises(MCPError) as unknown:
            await caller.client.call_tool("no_such_tool", {})
        assert unknown.value.error.code == -32602
        answer = await caller.client.call_tool(
            "execute_command", {"command": "sleep 2"}, progress_callback=hear
        )
        assert not answer.is_error
        assert heard
        (prompt,) = (await caller.client.list_prompts()).prompts
        assert (await caller.client.get_prompt(prompt.name, {"command": "true"})).messages


async def test_the_toolsets_are_narrowed_by_an_argument(stack: Stack) -> None:
    async with bridged(stack, "--toolsets", "oneshot") as caller:
        assert await _names(caller) == ["execute_command"]


async def test_a_wrong_token_is_refused_in_the_words_of_the_server(stack: Stack) -> None:
    wrong = "hl_0000000000000000_" + "A" * 43
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcp_bridge", "--url", stack.url),
        cwd=ROOT,
        env={"HOLDLINE_TOKEN": wrong},
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == UNAVAILABLE
    assert Unauthenticated.hint in said.decode()
    assert wrong not in said.decode()


async def _names(caller: Caller) -> list[str]:
    return [tool.name for tool in (await caller.client.list_tools()).tools]
