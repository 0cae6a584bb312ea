"""Plain calls of tools, answered without the SDK's session manager.

The manager makes a transport, tasks and streams for each request: a third of what a turn costs the
server. The tool, its result and the shape of the answer are the same on both ways.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from mcp_types import SERVER_INFO_META_KEY, methods

from mcp_adapter.event_stream import Answer, Send
from mcp_adapter.plain_call import METHOD, PlainCall, Receive
from mcp_adapter.server import as_result, build_server
from projects.accounts.authentication import Caller
from projects.errors.shown_tools import showing
from projects.tools.toolsets import check_toolsets, names_for, tool_for


async def answer(
    call: PlainCall,
    receive: Receive,
    send: Send,
    *,
    act: Callable[[], Awaitable[dict[str, Any]]],
    may_open: Callable[[], Awaitable[bool]],
) -> None:
    """Answers ``call`` with the result that ``act`` returns.

    A client that goes away cancels ``act``. An error of ``act`` is raised, and nothing was sent
    unless ``may_open`` allowed it.
    """
    task = asyncio.current_task()
    answering = Answer(call, send, may_open)
    departure = asyncio.ensure_future(_departure(receive))

    def cancel(_: object) -> None:
        if task is not None:
            task.cancel()

    departure.add_done_callback(cancel)
    try:
        await answering.end(await act())
    except asyncio.CancelledError:
        has_left = departure.done() and not departure.cancelled()
        if task is None or not has_left or task.uncancel():
            raise
    finally:
        departure.remove_done_callback(cancel)
        departure.cancel()
        answering.close()


async def _departure(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def result_of(call: PlainCall, caller: Caller, toolsets: Collection[str]) -> dict[str, Any]:
    """Calls the tool, and returns the result as the protocol's revision of the call has it.

    Raises:
        UnknownTool: if the caller is not shown such a tool.
        UnknownToolset: if there is no such set.

    """
    check_toolsets(toolsets)
    tool = tool_for(call.name, caller, toolsets)
    names = names_for(caller, toolsets)
    with showing(names):
        result = as_result(await tool.call(call.arguments, caller))
    sent = methods.serialize_server_result(METHOD, call.version, result)
    if call.is_modern:
        stamp = build_server(names).server_info_stamp
        sent["_meta"] = {**sent.get("_meta", {}), SERVER_INFO_META_KEY: stamp}
    return sent
