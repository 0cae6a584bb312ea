"""``start_interactive_command``: a program on a PTY of a remote host, until its first prompt."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import InvalidPattern, RequestIdReused
from projects.errors.commands import (
    CommandHasNul,
    CommandNotAllowed,
    CwdNotAllowed,
    EmptyCommand,
    StartFailed,
)
from projects.errors.hosts import (
    ControllerAmbiguous,
    ControllerNotFound,
    ControllerOffline,
    NoControllerEnrolled,
)
from projects.errors.limits import LifetimeTooLong, SessionLimitReached
from projects.errors.uncertain import RequestNotKnown, StartLost
from projects.policy.arguments import START_SCOPES, start_scopes
from projects.sessions.answers.results import InteractiveCommandResult, TurnResult
from projects.sessions.turns import DEFAULT_OUTPUT_BYTES, DEFAULT_WAIT_SECONDS
from projects.tools import guidance
from projects.tools.base import Tool, ToolInput
from projects.tools.command_arguments import ControllerName, Directory, Variables
from projects.tools.terminal_arguments import (
    Columns,
    OutputBudget,
    RequestId,
    Rows,
    WaitFor,
    WaitSeconds,
)


class StartInput(ToolInput):
    """The arguments that start_interactive_command takes."""

    command: Annotated[
        str,
        Field(
            description="The command line, such as 'sudo apt-get install nginx' or 'python3 -q'."
        ),
    ]
    controller: ControllerName = None
    cwd: Directory = None
    env: Variables = None
    rows: Rows = 24
    cols: Columns = 120
    lifetime_seconds: Annotated[
        float | None,
        Field(
            allow_inf_nan=False,
            description=(
                "Seconds after which the program is ended; the project sets the default and "
                "the maximum. Not the time this call waits."
            ),
        ),
    ] = None
    wait_seconds: WaitSeconds = DEFAULT_WAIT_SECONDS
    wait_for: WaitFor = None
    max_output_bytes: OutputBudget = DEFAULT_OUTPUT_BYTES
    request_id: RequestId = None


async def _handle(arguments: StartInput, caller: Caller) -> InteractiveCommandResult:
    return await services.controller_start_interactive_command(
        caller.project_id,
        arguments.command,
        caller=caller,
        controller=arguments.controller,
        cwd=arguments.cwd,
        env=arguments.env,
        rows=arguments.rows,
        cols=arguments.cols,
        lifetime_seconds=arguments.lifetime_seconds,
        wait_seconds=arguments.wait_seconds,
        wait_for=arguments.wait_for,
        max_output_bytes=arguments.max_output_bytes,
        request_id=arguments.request_id,
    )


START_INTERACTIVE_COMMAND = Tool(
    name="start_interactive_command",
    title="Start a program on a terminal",
    description=(
        "Starts a command that may ask something on a real terminal (PTY) of a remote host and "
        "returns the moment it waits for input or"
        " ends: session_id, its output so far, and while it waits what it asks (prompt). Answer "
        "with send_command_input."
    ),
    guidance=guidance.ENDING,
    input_model=StartInput,
    output_model=TurnResult,
    handler=_handle,
    scopes=START_SCOPES,
    scopes_for=start_scopes,
    errors=(
        EmptyCommand,
        CommandHasNul,
        CommandNotAllowed,
        CwdNotAllowed,
        InvalidPattern,
        NoControllerEnrolled,
        ControllerNotFound,
        ControllerAmbiguous,
        ControllerOffline,
        SessionLimitReached,
        LifetimeTooLong,
        RequestIdReused,
        RequestNotKnown,
        StartFailed,
        StartLost,
    ),
    is_destructive=True,
)
