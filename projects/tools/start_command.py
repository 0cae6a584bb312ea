"""``start_command``: a program in the background, on pipes."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.commands import StartUnconfirmed
from projects.errors.limits import SessionLimitReached
from projects.errors.uncertain import StartLost
from projects.policy.arguments import LIFETIME_SECONDS, START_SCOPES, start_scopes
from projects.sessions import background
from projects.tools import guidance
from projects.tools.background_arguments import MAX_WAIT_MS, CamelInput, RequestUuid
from projects.tools.base import Tool
from projects.tools.command_arguments import (
    START_ERRORS,
    Command,
    ControllerName,
    Directory,
    StreamViewed,
    Variables,
)

_LEAST_MS, _MOST_MS = (int(bound * 1000) for bound in LIFETIME_SECONDS)


def _as_lifetime(value: float | None) -> float | None:
    """The lifetime. A wrong one is refused here: the service would speak of seconds."""
    if value is not None and not _LEAST_MS <= value <= _MOST_MS:
        raise PydanticCustomError(
            "lifetime_out_of_range",
            "must be between {least} and {most} ms",
            {"least": _LEAST_MS, "most": _MOST_MS},
        )
    return value


class StartCommandInput(CamelInput):
    """The arguments that start_command takes."""

    command: Command
    cwd: Directory = None
    timeout: Annotated[
        float,
        Field(
            ge=0,
            le=MAX_WAIT_MS,
            allow_inf_nan=False,
            description="Milliseconds to wait for the first output. Not a lifetime.",
        ),
    ] = 0
    env: Variables = None
    lifetime: Annotated[
        float | None,
        Field(
            allow_inf_nan=False,
            description=(
                "Milliseconds after which the program is ended; default: a day, unless the "
                "server says otherwise."
            ),
        ),
        AfterValidator(_as_lifetime),
    ] = None
    view: StreamViewed = "text"
    controller: ControllerName = None
    request_id: RequestUuid = None


async def _handle(arguments: StartCommandInput, caller: Caller) -> background.BackgroundStarted:
    return await services.background_start(
        caller.project_id,
        arguments.command,
        caller=caller,
        controller=arguments.controller,
        cwd=arguments.cwd,
        env=arguments.env,
        lifetime_seconds=None if arguments.lifetime is None else arguments.lifetime / 1000,
        wait_seconds=arguments.timeout / 1000,
        view=arguments.view,
        request_id=arguments.request_id,
    )


START_COMMAND = Tool(
    name="start_command",
    title="Start a command in the background",
    description=(
        "Starts a command without a terminal in the background of a remote host and "
        "returns its sessionId and pid at once, or with timeout as soon as it has "
        "printed something. For a command that asks nothing and keeps running between"
        " calls. Continue with read_output, write_input and stop_command. || Continue"
        " with read_output."
    ),
    guidance=guidance.BACKGROUND,
    input_model=StartCommandInput,
    output_model=background.BackgroundStarted,
    handler=_handle,
    scopes=START_SCOPES,
    scopes_for=start_scopes,
    errors=(*START_ERRORS, SessionLimitReached, StartUnconfirmed, StartLost),
    is_destructive=True,
    renamed={"lifetime_seconds": "lifetime"},
)
