"""``execute_command``: a program from start to end in one call, on pipes."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.inputs import InputTooLarge
from projects.errors.limits import SessionLimitReached
from projects.errors.uncertain import StartLost
from projects.policy.arguments import START_SCOPES, start_scopes
from projects.sessions import one_shot
from projects.tools import guidance
from projects.tools.base import Tool, ToolInput
from projects.tools.command_arguments import (
    START_ERRORS,
    Command,
    ControllerName,
    Directory,
    StreamViewed,
    Variables,
)
from projects.tools.terminal_arguments import RequestId


class ExecuteInput(ToolInput):
    """The arguments that execute_command takes."""

    command: Command
    input: Annotated[
        str,
        Field(
            description=("Standard input of the program; end of file follows. Default: nothing.")
        ),
    ] = ""
    cwd: Directory = None
    env: Variables = None
    timeout_seconds: Annotated[
        float,
        Field(
            ge=1,
            le=one_shot.MAX_TIMEOUT_SECONDS,
            allow_inf_nan=False,
            description=(
                "The program and its children are ended after this long. Use start_command "
                "for anything longer."
                " || Use start_interactive_command with lifetime_seconds for anything longer."
            ),
        ),
    ] = one_shot.DEFAULT_TIMEOUT_SECONDS
    max_output_bytes: Annotated[
        int,
        Field(
            ge=1024,
            le=one_shot.MAX_OUTPUT_BYTES,
            description=("Bytes of each stream. If there are more, their head and tail are shown."),
        ),
    ] = one_shot.DEFAULT_OUTPUT_BYTES
    view: StreamViewed = "text"
    controller: ControllerName = None
    request_id: RequestId = None


async def _handle(arguments: ExecuteInput, caller: Caller) -> one_shot.OneShotResult:
    return await services.command_execute(
        caller.project_id,
        arguments.command,
        caller=caller,
        controller=arguments.controller,
        input_text=arguments.input,
        cwd=arguments.cwd,
        env=arguments.env,
        timeout_seconds=arguments.timeout_seconds,
        max_output_bytes=arguments.max_output_bytes,
        view=arguments.view,
        request_id=arguments.request_id,
    )


EXECUTE_COMMAND = Tool(
    name="execute_command",
    title="Run a command to its end",
    description=(
        "Runs a command without a terminal on a remote host, waits for its end and returns "
        "stdout, stderr and the return code."
        " NOT for interactive commands, which may ask a question: use start_interactive_command."
        " || NOT for interactive commands, which may ask a question."
        " NOT for long-running ones (servers, watches, builds): use start_command."
        " || NOT for long-running ones (servers, watches, builds)."
    ),
    guidance=guidance.EXECUTING,
    input_model=ExecuteInput,
    output_model=one_shot.OneShotResult,
    handler=_handle,
    scopes=START_SCOPES,
    scopes_for=start_scopes,
    errors=(*START_ERRORS, InputTooLarge, SessionLimitReached, StartLost),
    is_destructive=True,
)
