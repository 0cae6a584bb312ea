"""``query_command_status``: a job's state, and its output from any byte offset on."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.sessions import jobs
from projects.tools.base import Tool, ToolInput
from projects.tools.command_arguments import StreamViewed


class QueryInput(ToolInput):
    """The arguments that query_command_status takes."""

    token: Annotated[
        str,
        Field(
            max_length=64,
            description="Token of the job, as run_command returned it. || Token of the job.",
        ),
    ]
    stdout_offset: Annotated[
        int,
        Field(
            ge=0,
            le=2**62,
            description=("Return stdout from this byte on: stdout_length of your last query."),
        ),
    ] = 0
    stderr_offset: Annotated[
        int,
        Field(
            ge=0,
            le=2**62,
            description=("Return stderr from this byte on: stderr_length of your last query."),
        ),
    ] = 0
    view: StreamViewed = "text"


async def _handle(arguments: QueryInput, caller: Caller) -> jobs.JobStatus:
    return await services.job_status(
        caller.project_id,
        arguments.token,
        stdout_offset=arguments.stdout_offset,
        stderr_offset=arguments.stderr_offset,
        view=arguments.view,
    )


QUERY_COMMAND_STATUS = Tool(
    name="query_command_status",
    title="Query a submitted command",
    description="Returns the state of a submitted command and its output, also while it runs.",
    guidance=(
        "It answers at once and never waits: leave some seconds between two queries. To have only "
        "what is new, pass stdout_length and"
        " stderr_length of the last answer as the offsets."
    ),
    input_model=QueryInput,
    output_model=jobs.JobStatus,
    handler=_handle,
    scopes=("session:read",),
    errors=(),
    is_read_only=True,
    is_idempotent=True,
)
