"""``write_input``: data for a background session's standard input."""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.errors.commands import CommandNotAllowed
from projects.errors.hosts import ControllerOffline
from projects.errors.inputs import InputRefused, InputTooLarge
from projects.errors.sessions import SessionEnded, SessionNotFound, SessionTakenOver
from projects.errors.uncertain import InputUnconfirmed, RequestNotKnown
from projects.sessions import background
from projects.tools.background_arguments import BackgroundId, CamelInput, RequestUuid
from projects.tools.base import Tool


class WriteInputInput(CamelInput):
    """The arguments that write_input takes."""

    session_id: BackgroundId
    input: Annotated[
        str, Field(description="Written exactly as given: end a line with \\n, as in 'data\\n'.")
    ]
    eof: Annotated[
        bool,
        Field(
            description=("Close standard input after the data, for programs that read to its end.")
        ),
    ] = False
    request_id: RequestUuid = None


async def _handle(arguments: WriteInputInput, caller: Caller) -> background.Delivery:
    return await services.background_write(
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
    description=(
        "Writes data to the standard input of a background session; success means that the "
        "program's pipe took all of it."
    ),
    guidance=(
        "The program's answer comes with read_output. For a program that needs a "
        "terminal use start_interactive_command."
    ),
    input_model=WriteInputInput,
    output_model=background.Delivery,
    handler=_handle,
    scopes=("session:input",),
    errors=(
        SessionNotFound,
        SessionEnded,
        SessionTakenOver,
        CommandNotAllowed,
        InputTooLarge,
        InputRefused,
        InputUnconfirmed,
        ControllerOffline,
        RequestIdReused,
        RequestNotKnown,
    ),
    is_destructive=True,
    renamed={"input_text": "input"},
)
