"""``list_sessions``: what runs and what ran."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.hosts import ControllerNotFound
from projects.tools.base import Tool, ToolInput
from projects.tools.paging import Before, PageSize


class ListSessionsInput(ToolInput):
    """The arguments that list_sessions takes."""

    active_only: Annotated[
        bool, Field(description="Only sessions whose program has not ended.")
    ] = False
    controller: Annotated[
        str | None, Field(description="Only sessions of this host (name or id).")
    ] = None
    limit: PageSize = 20
    before: Before = None


async def _handle(arguments: ListSessionsInput, caller: Caller) -> services.SessionPage:
    return await services.session_list(
        caller.project_id,
        active_only=arguments.active_only,
        controller=arguments.controller,
        limit=arguments.limit,
        before=arguments.before,
    )


LIST_SESSIONS = Tool(
    name="list_sessions",
    title="List sessions",
    description=(
        "Lists the project's sessions, newest first: what runs, what waits for input, how the "
        "others ended."
    ),
    guidance=("Use it to find a session again, or the session that takes up a place you need."),
    input_model=ListSessionsInput,
    output_model=services.SessionPage,
    handler=_handle,
    scopes=("session:read",),
    errors=(ControllerNotFound,),
    is_read_only=True,
    is_idempotent=True,
)
