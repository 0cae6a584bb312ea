"""``list_session_monitors``: the project's monitors, so that a lost id can be found again."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.tools.base import Tool, ToolInput
from projects.tools.paging import Before, PageSize


class ListMonitorsInput(ToolInput):
    """The arguments that list_session_monitors takes."""

    active_only: Annotated[bool, Field(description="Only monitors that were not stopped.")] = True
    limit: PageSize = 20
    before: Before = None


async def _handle(arguments: ListMonitorsInput, caller: Caller) -> services.MonitorPage:
    return await services.monitor_list(
        caller.project_id,
        active_only=arguments.active_only,
        limit=arguments.limit,
        before=arguments.before,
    )


LIST_SESSION_MONITORS = Tool(
    name="list_session_monitors",
    title="List monitors",
    description=(
        "Lists the project's monitors of log files, newest first: their ids, their logs, and "
        "how far they have read."
    ),
    guidance="Use it to find a monitor again whose session_id you no longer have.",
    input_model=ListMonitorsInput,
    output_model=services.MonitorPage,
    handler=_handle,
    scopes=("monitor:read",),
    errors=(),
    is_read_only=True,
    is_idempotent=True,
)
