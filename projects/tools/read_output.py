"""``read_output``: what a background session printed since the caller's last read."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.sessions import SessionNotFound
from projects.sessions.answers.unread import BackgroundOutput
from projects.tools import guidance
from projects.tools.background_arguments import (
    MAX_WAIT_MS,
    BackgroundId,
    CamelInput,
    RequestUuid,
)
from projects.tools.base import Tool
from projects.tools.command_arguments import StreamViewed


class ReadOutputInput(CamelInput):
    """The arguments that read_output takes."""

    session_id: BackgroundId
    timeout: Annotated[
        float,
        Field(
            ge=0,
            le=MAX_WAIT_MS,
            allow_inf_nan=False,
            description=(
                "Milliseconds to wait while there is nothing new. Returns the moment "
                "something comes, or the program ends."
            ),
        ),
    ] = 0
    view: StreamViewed = "text"
    request_id: RequestUuid = None


async def _handle(arguments: ReadOutputInput, caller: Caller) -> BackgroundOutput:
    return await services.background_read(
        caller.project_id,
        arguments.session_id,
        caller=caller,
        wait_seconds=arguments.timeout / 1000,
        view=arguments.view,
        request_id=arguments.request_id,
    )


READ_OUTPUT = Tool(
    name="read_output",
    title="Read a background command's output",
    description=(
        "Returns what a background session printed since your last read, stdout and stderr "
        "apart, and whether it still runs."
    ),
    guidance=guidance.READING,
    input_model=ReadOutputInput,
    output_model=BackgroundOutput,
    handler=_handle,
    scopes=("session:read",),
    errors=(SessionNotFound,),
    is_read_only=True,
)
