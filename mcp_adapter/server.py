"""The registry as an MCP server: schemas and calls pass through unchanged.

The SDK's low-level server, not its decorators: those parse strings that look like JSON and repeat input values in errors.
"""

from functools import cache
from typing import Any, Final

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp_types import CallToolRequestParams, ListToolsResult, PaginatedRequestParams, ToolAnnotations
from mcp_types import Tool as ToolDescription

from controller_client import __version__
from mcp_adapter.callers import Context, as_protocol_error, caller_of, scope_of, toolsets_of
from mcp_adapter.progress import reporting
from mcp_adapter.prompts import get_prompt, list_prompts
from mcp_adapter.resources import list_resource_templates, list_resources, read_resource
from projects.errors import UnknownTool
from projects.tools.base import Tool, ToolOutcome
from projects.tools.guidance import INSTRUCTIONS
from projects.tools.registry import ALL_TOOLS
from projects.tools.toolsets import tool_for, tools_for

ERROR_META: Final = "holdline/error"
_LIST_FRESH_MS: Final = 300_000


def build_server() -> Server[Any]:
    """The server object; it holds no state of any request."""
    server: Server[Any] = Server(
        "holdline",
        version=__version__,
        title="Holdline",
        instructions=INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,  # type: ignore[arg-type]  # a plain dict is a result too, and skips one model
        on_list_resources=list_resources,
        on_list_resource_templates=list_resource_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        cache_hints={"tools/list": CacheHint(ttl_ms=_LIST_FRESH_MS, scope="private")},
        # No argument is mirrored into a header, so there is nothing to look up before each call.
        get_tool_input_schema=lambda _name: None,
    )
    # Spans for an exporter that is not there cost a tenth of the request.
    server.middleware.clear()
    return server


async def _list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
    # Descriptions are no secret; a transport that authenticates nobody shows them all, and calls none.
    tools = tools_for(caller_of(context), toolsets_of(context)) if scope_of(context) else ALL_TOOLS
    return ListToolsResult(tools=[_describe(tool) for tool in tools])


async def _call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
    caller = caller_of(context)
    try:
        tool = tool_for(params.name, caller, toolsets_of(context))
    except UnknownTool as error:
        raise as_protocol_error(error) from None
    with reporting(context):
        return as_result(await tool.call(params.arguments, caller))


def as_result(outcome: ToolOutcome) -> dict[str, Any]:
    """A CallToolResult. An error carries no structuredContent: clients would check it against the output schema."""
    content = [{"type": "text", "text": outcome.text}]
    if outcome.is_error:
        return {"resultType": "complete", "content": content, "isError": True, "_meta": {ERROR_META: outcome.body}}
    return {"resultType": "complete", "content": content, "structuredContent": outcome.body, "isError": False}


@cache
def _describe(tool: Tool[Any]) -> ToolDescription:
    return ToolDescription(
        name=tool.name,
        title=tool.title,
        description=tool.full_description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
            open_world_hint=True,
        ),
    )
