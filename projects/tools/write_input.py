"""``write_input``: data for a background session's standard input."""

from typing import Annotated

from pydantic import Field

from projects import background, errors
from projects.authentication import Caller
from projects.tools.background_output import BackgroundId, CamelInput, DeliveryOutput, RequestUuid
from projects.tools.base import Tool


class WriteInputInput(CamelInput):
    """Arguments of write_input."""

    session_id: BackgroundId
    input: Annotated[str, Field(description="Written exactly as given: end a line with \\n, as in 'data\\n'.")]
    eof: Annotated[bool, Field(description="Close the standard input after it, for programs that read to the end.")] = False
    request_id: RequestUuid = None


async def _handle(arguments: WriteInputInput, caller: Caller) -> background.Delivery:
    return await background.background_write(
        caller.project_id,
        arguments.session_id,
        arguments.input,
        caller=caller,
        eof=arguments.eof,
        request_id=arguments.request_id,
    )


WRITE_INPUT = Tool(
    name="write_input",
    title="Write to a background command",
    description="Writes data to the standard input of a session of start_command; success means that the program's pipe took all of it.",
    guidance="What the program makes of it comes with read_output. For a program that talks to a terminal use start_interactive_command.",
    input_model=WriteInputInput,
    output_model=DeliveryOutput,
    handler=_handle,
    scopes=("session:input",),
    errors=(
        errors.SessionNotFound,
        errors.SessionEnded,
        errors.SessionTakenOver,
        errors.CommandNotAllowed,
        errors.InputTooLarge,
        errors.InputRefused,
        errors.ControllerOffline,
        errors.RequestIdReused,
    ),
    is_destructive=True,
)
