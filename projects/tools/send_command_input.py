"""``send_command_input``: type into a session, wait on, or end it."""

from typing import Annotated, Literal

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import InvalidArgument, InvalidPattern, RequestIdReused
from projects.errors.commands import CommandNotAllowed
from projects.errors.hosts import ControllerOffline
from projects.errors.inputs import InputRefused, InputTooLarge, PersonPending, UnknownKey
from projects.errors.secrets import SecretNotFound
from projects.errors.sessions import SessionEnded, SessionNotFound, SessionTakenOver
from projects.errors.uncertain import InputUnconfirmed, RequestNotKnown
from projects.sessions.answers.results import InteractiveOutputResult
from projects.sessions.turns import DEFAULT_OUTPUT_BYTES, DEFAULT_WAIT_SECONDS
from projects.tools import guidance
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_arguments import (
    OutputBudget,
    RequestId,
    SessionId,
    WaitFor,
    WaitSeconds,
)


class SendInput(ToolInput):
    """The arguments that send_command_input takes."""

    session_id: SessionId
    input_text: Annotated[
        str,
        Field(
            description=(
                "Typed exactly as given: end a line with \\n, as in 'yes\\n'. In a full-screen "
                "program \\n is often not Enter: use keys there. Without text, keys or secret "
                "the call only waits."
            )
        ),
    ] = ""
    keys: Annotated[
        tuple[str, ...],
        Field(
            description=(
                "Keys by name, pressed after the text, such as ['ctrl-c'], ['down', 'enter'], "
                "['escape'], ['f10'], ['alt-x']."
            )
        ),
    ] = ()
    secret: Annotated[
        str | None,
        Field(
            description=(
                "Name of a stored secret. Its value and Enter are typed, and nobody sees the "
                "value. Give it alone, and only while the program hides what is typed."
            )
        ),
    ] = None
    ask_person: Annotated[
        str | None,
        Field(
            description=(
                "Ask a person to type the secret that the program asks for, such as 'the sudo "
                "password of web-17'. You do not see it. Give it alone; PERSON_PENDING means that "
                "nobody has typed it yet: repeat the call."
            )
        ),
    ] = None
    terminate: Annotated[
        bool,
        Field(
            description=(
                "End the session with its whole process tree. Cannot be combined with input."
            )
        ),
    ] = False
    wait_seconds: WaitSeconds = DEFAULT_WAIT_SECONDS
    wait_for: WaitFor = None
    max_output_bytes: OutputBudget = DEFAULT_OUTPUT_BYTES
    view: Annotated[
        Literal["text", "screen"],
        Field(description="screen: output is the rendered screen, for full-screen programs."),
    ] = "text"
    request_id: RequestId = None


def _scopes_for(arguments: SendInput) -> tuple[str, ...]:
    if arguments.terminate:
        return ("session:kill",)
    if arguments.secret is not None:
        return ("session:input", "secret:use")
    if arguments.ask_person is not None:
        return ("session:input",)
    # Waiting on types nothing.
    return ("session:input",) if arguments.input_text or arguments.keys else ("session:read",)


async def _ask(arguments: SendInput, wanted: str, caller: Caller) -> InteractiveOutputResult:
    others = (arguments.input_text, arguments.keys, arguments.secret, arguments.terminate)
    if any(others) or arguments.wait_for or arguments.view != "text":
        raise InvalidArgument(["ask_person: give it alone, with wait_seconds at most"])
    return await services.session_ask_person(
        caller.project_id,
        arguments.session_id,
        wanted,
        caller=caller,
        wait_seconds=arguments.wait_seconds,
        max_output_bytes=arguments.max_output_bytes,
        request_id=arguments.request_id,
    )


async def _handle(arguments: SendInput, caller: Caller) -> InteractiveOutputResult:
    if arguments.ask_person is not None:
        return await _ask(arguments, arguments.ask_person, caller)
    return await services.controller_send_input(
        caller.project_id,
        arguments.session_id,
        arguments.input_text,
        caller=caller,
        keys=arguments.keys,
        secret=arguments.secret,
        terminate=arguments.terminate,
        wait_seconds=arguments.wait_seconds,
        wait_for=arguments.wait_for,
        max_output_bytes=arguments.max_output_bytes,
        view=arguments.view,
        request_id=arguments.request_id,
    )


SEND_COMMAND_INPUT = Tool(
    name="send_command_input",
    title="Type into a session",
    description=(
        "Types input_text, then presses keys, in an interactive session and returns the output "
        "that followed, the moment the program waits"
        " again or ends. With neither it only waits for more output. terminate=true ends the "
        "session and returns the rest of its output."
    ),
    guidance=f"{guidance.PROMPTS} {guidance.WAITING} {guidance.SECRETS}",
    input_model=SendInput,
    output_model=InteractiveOutputResult,
    handler=_handle,
    scopes=("session:read", "session:input", "session:kill", "secret:use"),
    scopes_for=_scopes_for,
    errors=(
        SessionNotFound,
        SessionEnded,
        SessionTakenOver,
        InputTooLarge,
        CommandNotAllowed,
        InputRefused,
        InputUnconfirmed,
        UnknownKey,
        SecretNotFound,
        PersonPending,
        InvalidPattern,
        ControllerOffline,
        RequestIdReused,
        RequestNotKnown,
    ),
    is_destructive=True,
)
