"""The registry as an MCP server: schemas and calls pass through unchanged.

The SDK's low-level server, not its decorators: those parse strings that look like JSON and repeat
input values in errors.
"""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, Final, TypeVar

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    ListToolsResult,
    PaginatedRequestParams,
    ToolAnnotations,
)
from mcp_types import Tool as ToolDescription

from controller_client import __version__
from mcp_adapter.callers import Context, as_protocol_error, caller_of, toolsets_of
from mcp_adapter.progress import arguments_of, page_of, reporting, shows_pages
from mcp_adapter.prompts import prompt_made_for, prompts_listed_for
from mcp_adapter.resources import list_resource_templates, list_resources, read_resource
from projects.errors.calls import UnknownTool
from projects.errors.shown_tools import TOOL_NAMES, showing
from projects.tools.base import Tool, ToolOutcome
from projects.tools.guidance import instructions
from projects.tools.holding import first_round
from projects.tools.registry import ALL_TOOLS
from projects.tools.toolsets import tool_for

P = TypeVar("P")
R = TypeVar("R")

ERROR_META: Final = "holdline/error"
_LIST_FRESH_MS: Final = 300_000


@lru_cache(maxsize=256)
def build_server(names: frozenset[str] = TOOL_NAMES) -> Server[Any]:
    """The server object for callers that are shown the tools called ``names``.

    It holds no state of any request.

    The SDK keeps instructions with the server, so there is one for each set of tools that is in
    use.
    """
    tools = tuple(tool for tool in ALL_TOOLS if tool.name in names)

    async def list_tools(
        _context: Context, _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        # Descriptions are no secret: a transport that authenticates nobody shows them, and calls
        # none.
        return ListToolsResult(tools=[_describe(tool, names) for tool in tools])

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        caller = caller_of(context)
        try:
            tool = tool_for(params.name, caller, toolsets_of(context))
        except UnknownTool as error:
            raise as_protocol_error(error) from None
        with reporting(context):
            if not (caller.is_held and shows_pages(context, params)):
                given = arguments_of(params, tool.argument_names)
                return as_result(await tool.call(given, caller))
            with first_round() as this_round:
                outcome = await tool.call(params.arguments, caller)
        return page_of(outcome.body) if this_round.has_asked else as_result(outcome)

    server: Server[Any] = Server(
        "holdline",
        version=__version__,
        title="Holdline",
        instructions=instructions(names),
        on_list_tools=list_tools,
        on_call_tool=_showing(names, call_tool),  # type: ignore[arg-type]  # a plain dict is a result too, and skips one model
        on_list_resources=_showing(names, list_resources),
        on_list_resource_templates=list_resource_templates,
        on_read_resource=_showing(names, read_resource),
        on_list_prompts=prompts_listed_for(names),
        on_get_prompt=prompt_made_for(names),
        cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_FRESH_MS, scope="private")},
        # No argument is mirrored into a header, so there is nothing to look up before each call.
        get_tool_input_schema=lambda _name: None,
    )
    # Spans for an exporter that is not there cost a tenth of the request.
    server.middleware.clear()
    return server


def as_result(outcome: ToolOutcome) -> dict[str, Any]:
    """A CallToolResult.

    An error carries no structuredContent: clients would check it against the output schema.
    """
    content = [{"type": "text", "text": outcome.text}]
    if outcome.is_error:
        return {
            "resultType": "complete",
            "content": content,
            "isError": True,
            "_meta": {ERROR_META: outcome.body},
        }
    return {
        "resultType": "complete",
        "content": content,
        "structuredContent": outcome.body,
        "isError": False,
    }


def _showing(
    names: frozenset[str], handler: Callable[[Context, P], Awaitable[R]]
) -> Callable[[Context, P], Awaitable[R]]:
    """``handler`` with texts for a caller that is shown these tools."""

    async def handle(context: Context, params: P) -> R:
        with showing(names):
            return await handler(context, params)

    return handle


@lru_cache(maxsize=1024)
def _describe(tool: Tool[Any], names: frozenset[str]) -> ToolDescription:
    shown = tool.shown_to(names)
    return ToolDescription(
        name=tool.name,
        title=tool.title,
        description=shown.description,
        input_schema=shown.input_schema,
        output_schema=shown.output_schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=True,
        ),
    )
