"""The bridge joins the SDK's server over stdio to the SDK's client over HTTP.

Every request and every answer passes through as it is. Nothing is kept between requests: when the
Holdline server restarts, the calls that waited fail, and the next call works again. Cancelling a
call here cancels it there.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from mcp_bridge import __version__
from mcp_bridge.patient_client import PatientClient

Context = ServerRequestContext[Any, Any]
Paging = types.PaginatedRequestParams | None


async def serve(url: str, token: str) -> None:
    """Serve stdin and stdout until the client closes them."""
    async with (
        PatientClient(token) as http,
        Client(streamable_http_client(url, http_client=http)) as upstream,
    ):
        server = build_server(upstream)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


def build_server(upstream: Client) -> Server[Any]:
    """Build a server that gives the answers of ``upstream``."""

    async def call_tool(
        context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        return await upstream.session.call_tool(
            params.name, params.arguments, progress_callback=context.session.report_progress
        )

    async def read_resource(
        _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await upstream.session.read_resource(params.uri)

    async def get_prompt(
        _context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        return await upstream.session.get_prompt(params.name, params.arguments)

    return Server(
        "holdline",
        version=__version__,
        title="Holdline",
        instructions=upstream.instructions,
        on_list_tools=_paged(upstream.session.list_tools),
        on_call_tool=call_tool,
        on_list_resources=_paged(upstream.session.list_resources),
        on_list_resource_templates=_paged(upstream.session.list_resource_templates),
        on_read_resource=read_resource,
        on_list_prompts=_paged(upstream.session.list_prompts),
        on_get_prompt=get_prompt,
        get_tool_input_schema=lambda _name: None,
    )


def _paged(fetch: Callable[..., Awaitable[Any]]) -> Callable[[Context, Paging], Awaitable[Any]]:
    async def listed(_context: Context, params: Paging) -> Any:
        # Only the position is passed on: the other parameters are between this client and us.
        cursor = params.cursor if params is not None else None
        return await fetch(params=types.PaginatedRequestParams(cursor=cursor) if cursor else None)

    return listed
