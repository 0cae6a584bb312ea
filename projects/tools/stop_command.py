"""``stop_command``: end a background session, or send it a signal."""

from typing import Annotated

from pydantic import Field

from projects import background, errors
from projects.authentication import Caller
from projects.tools.background_output import BackgroundId, CamelInput, DeliveryOutput, RequestUuid
from projects.tools.base import Tool

DEFAULT_SIGNAL = "SIGTERM"


class StopCommandInput(CamelInput):
    """Arguments of stop_command."""

    session_id: BackgroundId
    signal: Annotated[
        str,
        Field(
            description=(
                "Left out: SIGTERM, and SIGKILL 5 s later for whatever is still there. Given: this signal, once, such as SIGINT or SIGHUP."
            )
        ),
    ] = DEFAULT_SIGNAL
    request_id: RequestUuid = None


async def _handle(arguments: StopCommandInput, caller: Caller) -> background.Delivery:
    return await background.background_stop(
        caller.project_id,
        arguments.session_id,
        caller=caller,
        signal_name=arguments.signal if "signal" in arguments.model_fields_set else None,
        request_id=arguments.request_id,
    )


STOP_COMMAND = Tool(
    name="stop_command",
    title="Stop a background command",
    description="Signals a session of start_command with its whole process tree; success means that the signal was sent.",
    guidance="Its output stays and can still be read with read_output.",
    input_model=StopCommandInput,
    output_model=DeliveryOutput,
    handler=_handle,
    scopes=("session:kill",),
    errors=(errors.SessionNotFound, errors.UnknownSignal, errors.RequestIdReused),
    is_destructive=True,
    is_idempotent=True,
)
