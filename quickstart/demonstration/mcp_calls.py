"""Calls of the quickstart to its own server, with the official MCP client."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from controller_client.protocol.sentences import sentences
from quickstart.errors import QuickstartError, ToolRefused

__all__ = ["Client", "active_sessions", "call", "connected", "is_online"]

_LOOK_AGAIN_SECONDS = 0.05


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[Client]:
    """A connected client of the endpoint at ``url``.

    An error inside is raised as one QuickstartError, not as nested exception groups.
    """
    try:
        async with (
            create_mcp_http_client(headers={"Authorization": f"Bearer {token}"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            # The client checks results against the tools' output schemas. They are fetched here, so
            # that this is not counted as part of the first turn.
            await client.list_tools()
            yield client
    except (MCPError, OSError) as error:
        raise QuickstartError(f"the MCP endpoint {url} failed: {error}") from error
    except ExceptionGroup as group:
        first = _first_of(group)
        raise (
            first
            if isinstance(first, QuickstartError)
            else QuickstartError(f"the MCP endpoint {url} failed: {first}")
        ) from group


def _first_of(group: ExceptionGroup[Exception]) -> Exception:
    first = group.exceptions[0]
    return _first_of(first) if isinstance(first, ExceptionGroup) else first


async def call(client: Client, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call a tool; returns its structured result. Raises ToolRefused with the tool's error."""
    answer = await client.call_tool(tool, dict(arguments))
    if answer.is_error or answer.structured_content is None:
        told = json.loads(getattr(answer.content[0], "text", "{}")) if answer.content else {}
        text = sentences(*(str(told.get(part) or "") for part in ("error", "hint")))
        raise ToolRefused(tool, text, str(told.get("code") or ""))
    structured: Mapping[str, Any] = answer.structured_content
    return structured


async def is_online(client: Client, controller: str, seconds: float) -> bool:
    """Wait until ``controller`` is online; False when that takes longer than ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        found = await call(client, "list_controllers", {})
        if any(one["name"] == controller and one["online"] for one in found["controllers"]):
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)


async def active_sessions(client: Client) -> list[Mapping[str, Any]]:
    """The sessions of the project that have not ended."""
    found = await call(client, "list_sessions", {"active_only": True, "limit": 100})
    return list(found["sessions"])
