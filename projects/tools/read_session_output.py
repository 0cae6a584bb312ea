"""``read_session_output``: any range of a session's output, as text, raw, or as the screen it draws."""

from typing import Annotated, Literal

from pydantic import Field

from projects import errors, reading
from projects.authentication import Caller
from projects.results import InteractiveOutputResult
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_output import MAX_WAIT_SECONDS, CursorOutput, SessionId, TerminalOutput
from projects.turns import DEFAULT_OUTPUT_BYTES, MAX_OUTPUT_BYTES, MIN_OUTPUT_BYTES


class ReadInput(ToolInput):
    """Arguments of read_session_output."""

    session_id: SessionId
    offset: Annotated[int, Field(ge=0, le=2**62, description="Where to begin; past the end the output is empty.")] = 0
    max_bytes: Annotated[
        int, Field(ge=MIN_OUTPUT_BYTES, le=MAX_OUTPUT_BYTES, description="At most this many bytes; go on at next_offset.")
    ] = DEFAULT_OUTPUT_BYTES
    view: Annotated[
        Literal["text", "raw", "screen"],
        Field(
            description="text: escape sequences removed; raw: every byte, in output_base64; screen: the rendered screen and cursor, now."
        ),
    ] = "text"
    stream: Annotated[
        Literal["stdout", "stderr"], Field(description="A terminal has only stdout; programs started without one have both.")
    ] = "stdout"
    wait_seconds: Annotated[
        float,
        Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False, description="How long to wait while there is nothing at this offset yet."),
    ] = 0.0


class ReadOutput(TerminalOutput):
    """A range of the output, and the session's state."""

    output_base64: str | None = Field(default=None, exclude_if=lambda data: data is None, description="Only with view 'raw'.")
    cursor: CursorOutput | None = Field(default=None, exclude_if=lambda cursor: cursor is None, description="Only with view 'screen'.")


async def _handle(arguments: ReadInput, caller: Caller) -> InteractiveOutputResult:
    return await reading.session_read_output(caller.project_id, **arguments.as_arguments())


READ_SESSION_OUTPUT = Tool(
    name="read_session_output",
    title="Read a session's output",
    description=(
        "Reads the output of a session from any offset; nothing is consumed, so any part can be read again, also after the end."
        " view 'screen' shows what a full-screen program (vim, less, a menu) draws."
    ),
    guidance="send_command_input already returns what is new; use this for what was left out, for long output by pages, and for screens.",
    input_model=ReadInput,
    output_model=ReadOutput,
    handler=_handle,
    scopes=("session:read",),
    errors=(errors.SessionNotFound,),
    is_read_only=True,
    is_idempotent=True,
)
