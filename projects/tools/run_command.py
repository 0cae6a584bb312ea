"""``run_command``: a job that is submitted now and asked after by its token."""

from typing import Annotated, Any, Literal

from pydantic import Field

from projects import errors, jobs
from projects.authentication import Caller
from projects.policy import START_SCOPES, start_scopes
from projects.tools.base import Tool, ToolInput, ToolOutput
from projects.tools.command_arguments import START_ERRORS, Command, ControllerName, Directory
from projects.tools.terminal_output import RequestId


class RunCommandInput(ToolInput):
    """Arguments of run_command."""

    command: Command
    timeout: Annotated[
        float,
        Field(
            ge=1,
            le=jobs.MAX_TIMEOUT_SECONDS,
            allow_inf_nan=False,
            description="Seconds after which it is ended, whatever it is doing; give a build its time.",
        ),
    ] = jobs.DEFAULT_TIMEOUT_SECONDS
    working_directory: Directory = None
    use_pty: Annotated[
        bool, Field(description="Run it on a terminal: it shows progress bars and colours, and stdout carries everything as it came.")
    ] = False
    max_buffer_size: Annotated[
        int,
        Field(
            ge=jobs.MIN_BUFFER_BYTES, le=jobs.MAX_BUFFER_BYTES, description="Bytes of output that are kept of each stream, newest first."
        ),
    ] = jobs.DEFAULT_BUFFER_BYTES
    controller: ControllerName = None
    request_id: RequestId = None


class RunCommandOutput(ToolOutput):
    """A job that was handed over."""

    token: str = Field(description="For query_command_status.")
    status: Literal["pending"]
    message: Literal["submitted"]


async def _handle(arguments: RunCommandInput, caller: Caller) -> dict[str, Any]:
    session_id = await jobs.job_submit(
        caller.project_id,
        arguments.command,
        caller=caller,
        controller=arguments.controller,
        timeout_seconds=arguments.timeout,
        cwd=arguments.working_directory,
        use_pty=arguments.use_pty,
        buffer_bytes=arguments.max_buffer_size,
        request_id=arguments.request_id,
    )
    return {"token": str(session_id), "status": "pending", "message": "submitted"}


RUN_COMMAND = Tool(
    name="run_command",
    title="Submit a command",
    description="Submits a command to a remote host and returns a token at once; query_command_status tells its state and output.",
    guidance=(
        "For a command that runs for a while, needs no input and is only asked after. It is ended after timeout, which is 30 s unless"
        " you give more. For one that ends in a moment use execute_command; for one that has no end of its own, or whose output you want"
        " to wait for, start_command; for one that may ask something start_interactive_command."
    ),
    input_model=RunCommandInput,
    output_model=RunCommandOutput,
    handler=_handle,
    scopes=START_SCOPES,
    scopes_for=start_scopes,
    errors=(*START_ERRORS, errors.SessionLimitReached),
    is_destructive=True,
)
