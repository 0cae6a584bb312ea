"""``list_controllers``: the hosts of the project."""

from datetime import datetime
from uuid import UUID

from pydantic import Field

from projects import reading
from projects.authentication import Caller
from projects.tools.base import Tool, ToolInput, ToolOutput


class ListControllersInput(ToolInput):
    """list_controllers takes no arguments."""


class ControllerOutput(ToolOutput):
    """One host."""

    id: UUID
    name: str
    online: bool = Field(validation_alias="is_online", description="Its daemon is connected; programs can be started there.")
    os: str
    platform: str
    hostname: str
    client_version: str
    lease_expires_at: datetime | None = Field(description="Counts as online until then; the past tells when it was last heard of.")


class ControllersOutput(ToolOutput):
    """All hosts."""

    controllers: list[ControllerOutput]


async def _handle(_arguments: ListControllersInput, caller: Caller) -> dict[str, object]:
    return {"controllers": await reading.controller_list(caller.project_id)}


LIST_CONTROLLERS = Tool(
    name="list_controllers",
    title="List hosts",
    description="Lists the hosts that programs can be started on, and whether each is online.",
    guidance="Not needed before start_interactive_command when there is only one host.",
    input_model=ListControllersInput,
    output_model=ControllersOutput,
    handler=_handle,
    scopes=("session:read",),
    errors=(),
    is_read_only=True,
    is_idempotent=True,
)
