"""``stop_command``: end a background session, or send it a signal."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.errors.inputs import UnknownSignal
from projects.errors.sessions import SessionNotFound
from projects.errors.uncertain import RequestNotKnown
from projects.sessions import background
from projects.tools.background_arguments import BackgroundId, CamelInput, RequestUuid
from projects.tools.base import Tool

DEFAULT_SIGNAL = "SIGTERM"


class StopCommandInput(CamelInput):
    """The arguments that stop_command takes."""

    session_id: BackgroundId
    signal: Annotated[
        str,
        Field(
            description=(
                "Left out: SIGTERM, then SIGKILL after 5 s for processes that are still "
                "there. Given: this signal, once, such as SIGINT or SIGHUP."
            )
        ),
    ] = DEFAULT_SIGNAL
    request_id: RequestUuid = None


async def _handle(arguments: StopCommandInput, caller: Caller) -> background.Stopping:
    return await services.background_stop(
        caller.project_id,
        arguments.session_id,
        caller=caller,
        signal_name=arguments.signal if "signal" in arguments.model_fields_set else None,
        request_id=arguments.request_id,
    )


STOP_COMMAND = Tool(
    name="stop_command",
    title="Stop a background command",
    description=(
        "Sends a signal to the whole process tree of a background session. success "
        "means that the signal was sent, or that the program had not begun and never will; "
        "survivors names the processes that are still there after the end."
    ),
    guidance="Its output stays. Read it with read_output.",
    input_model=StopCommandInput,
    output_model=background.Stopping,
    handler=_handle,
    scopes=("session:kill",),
    errors=(SessionNotFound, UnknownSignal, RequestIdReused, RequestNotKnown),
    is_destructive=True,
    is_idempotent=True,
)
