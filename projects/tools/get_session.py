"""``get_session``: one session, its newest output, and what was done to it by whom."""

from typing import Annotated
from uuid import UUID

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.sessions import SessionNotFound
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_arguments import SessionId

MAX_ORDERED_BYTES = 256 * 1024


class GetSessionInput(ToolInput):
    """The arguments that get_session takes."""

    session_id: SessionId
    digest: Annotated[
        bool,
        Field(
            description=(
                "Also return a summary of the output since your last digest: lines, errors, "
                "warnings, progress. Only your next digest is moved on by it."
            )
        ),
    ] = False
    ordered_bytes: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_ORDERED_BYTES,
            description=(
                "Also return this many of the newest bytes of stdout and stderr, in the order"
                " in which they were printed."
            ),
        ),
    ] = 0
    digest_from: Annotated[
        int | None,
        Field(
            ge=0,
            le=2**62,
            description=(
                "Begin the digest at this offset. Your next digest is not moved on by it."
            ),
        ),
    ] = None
    request_id: Annotated[
        UUID | None,
        Field(
            description=(
                "With digest: a fresh uuid of yours. If no answer came, repeat the call with "
                "it: the digest is about the same output."
            )
        ),
    ] = None


async def _handle(arguments: GetSessionInput, caller: Caller) -> services.SessionDetails:
    details = await services.session_get(
        caller.project_id, arguments.session_id, ordered_bytes=arguments.ordered_bytes
    )
    if not arguments.digest and arguments.digest_from is None:
        return details
    digest = await services.session_digest(
        caller.project_id,
        arguments.session_id,
        caller=caller,
        since=arguments.digest_from,
        request_id=arguments.request_id,
    )
    return details.model_copy(update={"digest": digest})


GET_SESSION = Tool(
    name="get_session",
    title="Look at a session",
    description=(
        "Shows one session: its state, the end of its output, how and by whom it was ended, "
        "and what was done to it."
    ),
    guidance=(
        "It changes nothing on the host. To go on with an interactive session use "
        "send_command_input. For the whole output of any session use read_session_output."
    ),
    input_model=GetSessionInput,
    output_model=services.SessionDetails,
    handler=_handle,
    scopes=("session:read",),
    errors=(SessionNotFound,),
    is_read_only=True,
    is_idempotent=True,
)
