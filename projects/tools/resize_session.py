"""``resize_session``: a new size for a session's terminal."""

from uuid import UUID

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.errors.hosts import ControllerOffline
from projects.errors.inputs import ResizeRefused
from projects.errors.sessions import SessionEnded, SessionNotFound, SessionTakenOver
from projects.errors.uncertain import RequestNotKnown
from projects.output.result import Result
from projects.sessions.answers.results import TerminalState
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_arguments import Columns, RequestId, Rows, SessionId


class ResizeInput(ToolInput):
    """The arguments that resize_session takes."""

    session_id: SessionId
    rows: Rows
    cols: Columns
    request_id: RequestId = None


class ResizeOutput(Result):
    """The size of the terminal after the call, and the session's state."""

    session_id: UUID
    rows: int
    cols: int
    state: TerminalState
    hint: str


async def _handle(arguments: ResizeInput, caller: Caller) -> ResizeOutput:
    result = await services.session_resize(
        caller.project_id,
        arguments.session_id,
        rows=arguments.rows,
        cols=arguments.cols,
        caller=caller,
        request_id=arguments.request_id,
    )
    return ResizeOutput(
        session_id=result.session_id,
        rows=arguments.rows,
        cols=arguments.cols,
        state=result.state,
        hint=result.hint,
    )


RESIZE_SESSION = Tool(
    name="resize_session",
    title="Resize a terminal",
    description=("Gives a session's terminal a new size. The program is told and may redraw."),
    guidance="Useful before reading a wide table or a full-screen program; not needed otherwise.",
    input_model=ResizeInput,
    output_model=ResizeOutput,
    handler=_handle,
    scopes=("session:input",),
    errors=(
        SessionNotFound,
        SessionEnded,
        SessionTakenOver,
        ResizeRefused,
        ControllerOffline,
        RequestIdReused,
        RequestNotKnown,
    ),
    is_idempotent=True,
)
