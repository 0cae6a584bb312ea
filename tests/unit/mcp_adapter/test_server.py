"""Deny by default: a transport that authenticates nobody reaches no tool."""

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from mcp_adapter.server import build_server
from projects.tools.registry import ALL_TOOLS


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_without_a_verified_caller_tools_can_be_listed_and_not_called(mode: str) -> None:
    async with Client(build_server(), mode=mode) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == [tool.name for tool in ALL_TOOLS]
        with pytest.raises(MCPError):
            await client.call_tool("list_controllers", {})
