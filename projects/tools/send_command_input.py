"""``send_command_input``: type into a session, wait on, or end it."""

from typing import Annotated, Literal

from pydantic import Field

from projects import errors, services
from projects.authentication import Caller
from projects.results import InteractiveOutputResult
from projects.tools import guidance
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_output import CursorOutput, OutputBudget, RequestId, SessionId, TurnOutput, WaitFor, WaitSeconds
from projects.turns import DEFAULT_OUTPUT_BYTES, DEFAULT_WAIT_SECONDS


class SendInput(ToolInput):
    """Arguments of send_command_input."""

    session_id: SessionId
    input_text: Annotated[
        str,
        Field(
            description=(
                "Typed exactly as given: end a line with \\n, as in 'yes\\n'. On a full screen \\n is often not Enter: use keys there."
                " Empty and nothing else: only wait on."
            )
        ),
    ] = ""
    keys: Annotated[
        tuple[str, ...],
        Field(
            description="Keys by name instead of text, such as ['ctrl-c'], ['down', 'enter'], ['escape'], ['ctrl-d'], ['f10'], ['alt-x']."
        ),
    ] = ()
    secret: Annotated[
        str | None,
        Field(
            description="Name of a stored secret: its value is typed, and Enter after it, without anybody seeing it. Alone, and only while"
            " prompt.kind is 'secret'."
        ),
    ] = None
    terminate: Annotated[bool, Field(description="End the session: its whole process tree. Cannot be combined with input.")] = False
    wait_seconds: WaitSeconds = DEFAULT_WAIT_SECONDS
    wait_for: WaitFor = None
    max_output_bytes: OutputBudget = DEFAULT_OUTPUT_BYTES
    view: Annotated[Literal["text", "screen"], Field(description="screen: output is the rendered screen, for full-screen programs.")] = (
        "text"
    )
    request_id: RequestId = None


class SendOutput(TurnOutput):
    """The terminal after the input."""

    cursor: CursorOutput | None = Field(default=None, exclude_if=lambda cursor: cursor is None, description="Only with view 'screen'.")


def _scopes_for(arguments: SendInput) -> tuple[str, ...]:
    if arguments.terminate:
        return ("session:kill",)
    if arguments.secret is not None:
        return ("session:input", "secret:use")
    # Waiting on types nothing.
    return ("session:input",) if arguments.input_text or arguments.keys else ("session:read",)


async def _handle(arguments: SendInput, caller: Caller) -> InteractiveOutputResult:
    return await services.controller_send_input(caller.project_id, caller=caller, **dict(iter(arguments)))


SEND_COMMAND_INPUT = Tool(
    name="send_command_input",
    title="Type into a session",
    description=(
        "Types input_text, or presses keys, in a session of start_interactive_command and returns the output that followed, the moment"
        " the program waits again or ends. With neither it only waits on for more output. terminate=true ends the session and returns"
        " the rest of its output."
    ),
    guidance=f"{guidance.PROMPTS} {guidance.WAITING} {guidance.SECRETS} {guidance.UNTRUSTED}",
    input_model=SendInput,
    output_model=SendOutput,
    handler=_handle,
    scopes=("session:read", "session:input", "session:kill", "secret:use"),
    scopes_for=_scopes_for,
    errors=(
        errors.SessionNotFound,
        errors.SessionEnded,
        errors.SessionTakenOver,
        errors.InputTooLarge,
        errors.CommandNotAllowed,
        errors.InputRefused,
        errors.UnknownKey,
        errors.SecretNotFound,
        errors.InvalidPattern,
        errors.ControllerOffline,
        errors.RequestIdReused,
    ),
    is_destructive=True,
)
