"""The quickstart as a caller: the official MCP client against the server's own endpoint."""

import asyncio
import shlex
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from quickstart.errors import QuickstartError
from quickstart.options import ROOT
from quickstart.transcript import Turn

_HIDDEN = "correct horse"
_LOOK_AGAIN_SECONDS = 0.05


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[Client]:
    """A client of the endpoint at ``url``. What goes wrong inside comes out as one QuickstartError, not as the task groups' pile."""
    try:
        async with (
            create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            # Results are checked against the tools' output schemas; fetching those is no part of a turn.
            await client.list_tools()
            yield client
    except (MCPError, OSError) as error:
        raise QuickstartError(f"the MCP endpoint {url} failed: {error}") from error
    except ExceptionGroup as group:
        first = _first_of(group)
        raise first if isinstance(first, QuickstartError) else QuickstartError(f"the MCP endpoint {url} failed: {first}") from group


def _first_of(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first_of(first) if isinstance(first, ExceptionGroup) else first


async def call(client: Client, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The structured result. Raises QuickstartError with the tool's own words if it refused."""
    answer = await client.call_tool(tool, dict(arguments))
    if answer.is_error or answer.structured_content is None:
        text = " ".join(getattr(part, "text", "") for part in answer.content)
        raise QuickstartError(f"{tool}: {text}")
    structured: Mapping[str, Any] = answer.structured_content
    return structured


async def wait_until_online(client: Client, seconds: float) -> None:
    """Until a controller of the project is online. Raises QuickstartError when it takes longer."""
    deadline = time.monotonic() + seconds
    while True:
        found = await call(client, "list_controllers", {})
        if any(controller.get("online") for controller in found.get("controllers", ())):
            return
        if time.monotonic() > deadline:
            raise QuickstartError(f"the local controller did not come online within {seconds:.0f} s")
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


async def demonstrate(client: Client) -> list[Turn]:
    """Hold the session with the asking program, one answer per prompt, until it ends or something else happens."""
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'quickstart' / 'asking_program.py'))}"
    turns = [await _turn(client, "(the command)", "start_interactive_command", {"command": program})]
    session_id = turns[0].result["session_id"]
    for typed, shown in (("Ada\n", "Ada"), (f"{_HIDDEN}\n", "(hidden)"), ("y\n", "y")):
        if turns[-1].state != "awaiting_input":
            break
        turns.append(await _turn(client, shown, "send_command_input", {"session_id": session_id, "input_text": typed}))
    if turns[-1].state != "exited":
        await call(client, "send_command_input", {"session_id": session_id, "terminate": True})
    return turns


async def _turn(client: Client, shown: str, tool: str, arguments: Mapping[str, Any]) -> Turn:
    started = time.perf_counter()
    result = await call(client, tool, arguments)
    return Turn(shown, time.perf_counter() - started, result)


def hidden_input() -> str:
    """What is typed at the hidden prompt: it must appear nowhere."""
    return _HIDDEN


async def terminate_sessions(client: Client) -> None:
    """End every session that is still active, all at once: each may take its grace period."""
    found = await call(client, "list_sessions", {"active_only": True, "limit": 100})
    ends = (
        call(client, "send_command_input", {"session_id": session["session_id"], "terminate": True, "wait_seconds": 8})
        for session in found["sessions"]
    )
    await asyncio.gather(*ends, return_exceptions=True)
