"""``list_controllers``: the hosts of the project."""

from projects import services
from projects.accounts.authentication import Caller
from projects.tools.base import Tool, ToolInput


class ListControllersInput(ToolInput):
    """The arguments of list_controllers: there are none."""


async def _handle(_arguments: ListControllersInput, caller: Caller) -> services.ControllerList:
    return await services.controller_list(caller.project_id)


LIST_CONTROLLERS = Tool(
    name="list_controllers",
    title="List hosts",
    description="Lists the hosts that programs can be started on, and whether each is online.",
    guidance="You do not need it while the project has only one host.",
    input_model=ListControllersInput,
    output_model=services.ControllerList,
    handler=_handle,
    scopes=("session:read",),
    errors=(),
    is_read_only=True,
    is_idempotent=True,
)
