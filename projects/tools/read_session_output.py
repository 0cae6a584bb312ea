"""``read_session_output``: any range of a session's output, as text, raw, or as the screen."""

from typing import Annotated, Literal

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.sessions import SessionNotFound
from projects.sessions.answers.results import OutputRange
from projects.sessions.turns import DEFAULT_OUTPUT_BYTES, MAX_OUTPUT_BYTES, MIN_OUTPUT_BYTES
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_arguments import MAX_WAIT_SECONDS, SessionId


class ReadInput(ToolInput):
    """The arguments that read_session_output takes."""

    session_id: SessionId
    offset: Annotated[
        int, Field(ge=0, le=2**62, description="Where to begin; past the end the output is empty.")
    ] = 0
    max_bytes: Annotated[
        int,
        Field(
            ge=MIN_OUTPUT_BYTES,
            le=MAX_OUTPUT_BYTES,
            description="At most this many bytes; go on at next_offset.",
        ),
    ] = DEFAULT_OUTPUT_BYTES
    view: Annotated[
        Literal["text", "raw", "screen"],
        Field(
            description=(
                "text: escape sequences removed; raw: every byte, in output_base64; screen: "
                "the rendered screen and cursor, now."
            )
        ),
    ] = "text"
    stream: Annotated[
        Literal["stdout", "stderr"],
        Field(description="A terminal has only stdout; programs started without one have both."),
    ] = "stdout"
    wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            le=MAX_WAIT_SECONDS,
            allow_inf_nan=False,
            description="How long to wait while there is nothing at this offset yet.",
        ),
    ] = 0.0


async def _handle(arguments: ReadInput, caller: Caller) -> OutputRange:
    return await services.session_read_output(
        caller.project_id,
        arguments.session_id,
        offset=arguments.offset,
        max_bytes=arguments.max_bytes,
        view=arguments.view,
        stream=arguments.stream,
        wait_seconds=arguments.wait_seconds,
    )


READ_SESSION_OUTPUT = Tool(
    name="read_session_output",
    title="Read a session's output",
    description=(
        "Reads the output of a session from any offset; nothing is consumed, so any part can be "
        "read again, also after the end."
        " view 'screen' shows what a full-screen program (vim, less, a menu) draws."
    ),
    guidance=(
        "Use it for what was left out of a result, for long output by pages, and for screens."
        " You do not need it for what is new: send_command_input returns that."
    ),
    input_model=ReadInput,
    output_model=OutputRange,
    handler=_handle,
    scopes=("session:read",),
    errors=(SessionNotFound,),
    is_read_only=True,
    is_idempotent=True,
)
