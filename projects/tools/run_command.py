"""``run_command``: a job that is submitted now and asked after by its token."""

from typing import Annotated, Literal

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.limits import SessionLimitReached
from projects.output.result import Result
from projects.policy.arguments import START_SCOPES, start_scopes
from projects.sessions import jobs
from projects.tools.base import Tool, ToolInput
from projects.tools.command_arguments import START_ERRORS, Command, ControllerName, Directory
from projects.tools.terminal_arguments import RequestId


class RunCommandInput(ToolInput):
    """The arguments that run_command takes."""

    command: Command
    timeout: Annotated[
        float,
        Field(
            ge=1,
            le=jobs.MAX_TIMEOUT_SECONDS,
            allow_inf_nan=False,
            description=(
                "Seconds after which the program is ended, whatever it is doing. Give a build"
                " enough."
            ),
        ),
    ] = jobs.DEFAULT_TIMEOUT_SECONDS
    working_directory: Directory = None
    use_pty: Annotated[
        bool,
        Field(
            description=(
                "Run the program on a terminal: it shows progress bars and colours, which a "
                "query with view 'raw' returns."
            )
        ),
    ] = False
    max_buffer_size: Annotated[
        int,
        Field(
            ge=jobs.MIN_BUFFER_BYTES,
            le=jobs.MAX_BUFFER_BYTES,
            description="Bytes of output that are kept of each stream, newest first.",
        ),
    ] = jobs.DEFAULT_BUFFER_BYTES
    controller: ControllerName = None
    request_id: RequestId = None


class RunCommandOutput(Result):
    """A job that was handed over."""

    token: str = Field(description="Name of the job. Ask after it with query_command_status.")
    status: Literal["pending"]
    message: Literal["submitted"]


async def _handle(arguments: RunCommandInput, caller: Caller) -> RunCommandOutput:
    session_id = await services.job_submit(
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
    return RunCommandOutput(token=str(session_id), status="pending", message="submitted")


RUN_COMMAND = Tool(
    name="run_command",
    title="Submit a command",
    description=(
        "Submits a command to a remote host and returns a token at once. query_command_status "
        "gives its state and output."
    ),
    guidance=(
        "For a command that runs for a while, needs no input and is only polled. It "
        "is ended after timeout, which is 30 s unless you give more. For a command "
        "that ends within seconds use execute_command. For a command that never ends "
        "by itself, or whose output you want to wait for, use start_command. For a "
        "command that may ask something use start_interactive_command."
    ),
    input_model=RunCommandInput,
    output_model=RunCommandOutput,
    handler=_handle,
    scopes=START_SCOPES,
    scopes_for=start_scopes,
    errors=(*START_ERRORS, SessionLimitReached),
    is_destructive=True,
    renamed={"cwd": "working_directory"},
)
