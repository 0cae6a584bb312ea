"""``search_session_output``: find lines in what was printed or read."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import InvalidArgument, InvalidPattern
from projects.errors.sessions import SessionNotFound
from projects.tools.base import Tool, ToolInput

Stream = Literal["stdout", "stderr", "log"]
Older = Literal["all", "same_stream"]


class SearchInput(ToolInput):
    """The arguments that search_session_output takes."""

    pattern: Annotated[
        str,
        Field(
            description="RE2 expression, matched within each line of plain text; (?i) ignores case."
        ),
    ]
    session_id: Annotated[
        UUID | None,
        Field(description=("A session or a monitor. Left out: all of the project, newest first.")),
    ] = None
    stream: Annotated[
        Stream | None,
        Field(description="Only this stream; log is what a monitor read. Left out: all."),
    ] = None
    offset: Annotated[
        int,
        Field(
            ge=0,
            le=2**62,
            description=(
                "With session_id and stream: begin at this byte. next of an earlier search has it."
            ),
        ),
    ] = 0
    older: Annotated[
        Older | None,
        Field(
            description=(
                "With session_id: also search what is older in the project. next of a search "
                "of the project has it."
            )
        ),
    ] = None
    context_lines: Annotated[
        int, Field(ge=0, le=10, description="Lines shown before and after each hit.")
    ] = 2
    max_results: Annotated[int, Field(ge=1, le=100, description="At most this many hits.")] = 20


async def _handle(arguments: SearchInput, caller: Caller) -> services.SearchResult:
    if arguments.session_id is None and (arguments.offset or arguments.older):
        raise InvalidArgument(["offset, older: belong to a session_id"])
    return await services.output_search(
        caller.project_id,
        arguments.pattern,
        session_id=arguments.session_id,
        stream=arguments.stream,
        offset=arguments.offset,
        older=arguments.older,
        context_lines=arguments.context_lines,
        max_results=arguments.max_results,
    )


SEARCH_SESSION_OUTPUT = Tool(
    name="search_session_output",
    title="Search output",
    description=(
        "Finds lines by a regular expression in the kept output of a session, in what a monitor "
        "has read, or in everything of the project,"
        " with their offsets and the lines around them."
    ),
    guidance="It takes a few seconds at most. Where it stopped early, next says how to go on.",
    input_model=SearchInput,
    output_model=services.SearchResult,
    handler=_handle,
    scopes=("session:read", "monitor:read"),
    errors=(SessionNotFound, InvalidPattern),
    is_read_only=True,
    is_idempotent=True,
)
