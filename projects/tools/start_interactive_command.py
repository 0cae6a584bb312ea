"""``start_interactive_command``: a program on a PTY of a remote host, until its first prompt."""

from typing import Annotated

from pydantic import Field

from projects import errors, services
from projects.authentication import Caller
from projects.policy import START_SCOPES, start_scopes
from projects.results import InteractiveCommandResult
from projects.tools import guidance
from projects.tools.base import Tool, ToolInput
from projects.tools.command_arguments import ControllerName, Directory, Variables
from projects.tools.terminal_output import Columns, OutputBudget, RequestId, Rows, TurnOutput, WaitFor, WaitSeconds
from projects.turns import DEFAULT_OUTPUT_BYTES, DEFAULT_WAIT_SECONDS


class StartInput(ToolInput):
    """Arguments of start_interactive_command."""

    command: Annotated[str, Field(description="The command line, such as 'sudo apt-get install nginx' or 'python3 -q'.")]
    controller: ControllerName = None
    cwd: Directory = None
    env: Variables = None
    rows: Rows = 24
    cols: Columns = 120
    lifetime_seconds: Annotated[
        float | None,
        Field(allow_inf_nan=False, description="The program is ended after this long; default 300. Not the time this call waits."),
    ] = None
    wait_seconds: WaitSeconds = DEFAULT_WAIT_SECONDS
    wait_for: WaitFor = None
    max_output_bytes: OutputBudget = DEFAULT_OUTPUT_BYTES
    request_id: RequestId = None


async def _handle(arguments: StartInput, caller: Caller) -> InteractiveCommandResult:
    return await services.controller_start_interactive_command(caller.project_id, caller=caller, **arguments.as_arguments())


START_INTERACTIVE_COMMAND = Tool(
    name="start_interactive_command",
    title="Start a program on a terminal",
    description=(
        "Starts a command on a real terminal (PTY) of a remote host and returns the moment it waits for input or ends: session_id,"
        " its output so far, and while it waits what it asks (prompt). Answer with send_command_input."
    ),
    guidance=(
        f"{guidance.CHOICE} {guidance.PROMPTS} {guidance.WAITING} {guidance.FLAGS} {guidance.SECRETS} {guidance.ENDING}"
        f" {guidance.UNTRUSTED}"
    ),
    input_model=StartInput,
    output_model=TurnOutput,
    handler=_handle,
    scopes=START_SCOPES,
    scopes_for=start_scopes,
    errors=(
        errors.EmptyCommand,
        errors.CommandHasNul,
        errors.CommandNotAllowed,
        errors.CwdNotAllowed,
        errors.InvalidPattern,
        errors.NoControllerEnrolled,
        errors.ControllerNotFound,
        errors.ControllerAmbiguous,
        errors.ControllerOffline,
        errors.SessionLimitReached,
        errors.RequestIdReused,
        errors.StartFailed,
    ),
    is_destructive=True,
)
