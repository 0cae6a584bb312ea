"""``resize_session``: a new size for a session's terminal."""

from typing import Any
from uuid import UUID

from projects import errors, services
from projects.authentication import Caller
from projects.results import TerminalState
from projects.tools.base import Tool, ToolInput, ToolOutput
from projects.tools.terminal_output import Columns, RequestId, Rows, SessionId


class ResizeInput(ToolInput):
    """Arguments of resize_session."""

    session_id: SessionId
    rows: Rows
    cols: Columns
    request_id: RequestId = None


class ResizeOutput(ToolOutput):
    """The terminal's size."""

    session_id: UUID
    rows: int
    cols: int
    state: TerminalState
    hint: str


async def _handle(arguments: ResizeInput, caller: Caller) -> dict[str, Any]:
    result = await services.session_resize(caller.project_id, caller=caller, **arguments.as_arguments())
    return {
        "session_id": result.session_id,
        "rows": arguments.rows,
        "cols": arguments.cols,
        "state": result.state,
        "hint": result.hint,
    }


RESIZE_SESSION = Tool(
    name="resize_session",
    title="Resize a terminal",
    description="Gives a session's terminal a new size; the program is told and redraws if it cares.",
    guidance="Useful before reading a wide table or a full-screen program; not needed otherwise.",
    input_model=ResizeInput,
    output_model=ResizeOutput,
    handler=_handle,
    scopes=("session:input",),
    errors=(errors.SessionNotFound, errors.SessionEnded, errors.ControllerOffline, errors.RequestIdReused),
    is_idempotent=True,
)
