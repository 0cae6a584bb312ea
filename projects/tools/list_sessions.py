"""``list_sessions``: what runs and what ran."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field

from projects import errors, reading
from projects.authentication import Caller
from projects.results import TerminalState
from projects.tools.base import Tool, ToolInput, ToolOutput


class ListSessionsInput(ToolInput):
    """Arguments of list_sessions."""

    active_only: Annotated[bool, Field(description="Only sessions whose program has not ended.")] = False
    controller: Annotated[str | None, Field(description="Only sessions of this host (name or id).")] = None
    limit: Annotated[int, Field(ge=1, le=100, description="At most this many, newest first.")] = 20
    before: Annotated[AwareDatetime | None, Field(description="Only older ones: next_before of the page before.")] = None


class SessionOutput(ToolOutput):
    """One session in a list."""

    session_id: UUID
    controller: str
    kind: str = Field(description="interactive, background, one_shot or job: which tools it belongs to.")
    command: str
    state: TerminalState
    lifecycle: str = Field(description="Its exact state, such as RUNNING, EXITED, TERMINATED, TIMED_OUT or LOST.")
    prompt_kind: str | None
    started_by: str
    created_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    signal: str | None
    end_reason: str | None
    ended_by: str | None
    total_bytes: int


class SessionsOutput(ToolOutput):
    """One page of sessions."""

    sessions: list[SessionOutput]
    next_before: datetime | None = Field(description="Pass as before to have the next page; null on the last one.")


async def _handle(arguments: ListSessionsInput, caller: Caller) -> dict[str, object]:
    sessions = await reading.session_list(caller.project_id, **arguments.as_arguments())
    return {"sessions": sessions, "next_before": sessions[-1].created_at if len(sessions) == arguments.limit else None}


LIST_SESSIONS = Tool(
    name="list_sessions",
    title="List sessions",
    description="Lists the project's sessions, newest first: what runs, what waits for input, how the others ended.",
    guidance="Use it to find a session again, or the one that takes the place you need.",
    input_model=ListSessionsInput,
    output_model=SessionsOutput,
    handler=_handle,
    scopes=("session:read",),
    errors=(errors.ControllerNotFound,),
    is_read_only=True,
    is_idempotent=True,
)
