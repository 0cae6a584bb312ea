"""``stop_session_monitor``: stop following a log, and delete it if it is a session's recording and nobody wants to keep it."""

from typing import Annotated, Literal

from pydantic import Field

from projects import errors, monitors
from projects.authentication import Caller
from projects.tools.base import Tool, ToolInput, ToolOutput


class StopMonitorInput(ToolInput):
    """Arguments of stop_session_monitor."""

    session_id: Annotated[str, Field(description="Session ID to stop")]
    save_log: Annotated[bool, Field(description="Whether to preserve log file (default: false)")] = False


class StopMonitorOutput(ToolOutput):
    """A monitor that was stopped."""

    session_id: str
    status: Literal["stopped"]
    total_bytes_processed: int
    session_duration_seconds: float
    log_deleted: bool
    log_kept_reason: str | None = Field(
        description=(
            "Why the log stays: save_log, not_managed (only recordings in the host's directory of session logs are deleted), scope_missing"
            " (needs monitor:delete), not_owned, other_file, file_not_found, controller_offline, host_silent, host_too_old, delete_failed."
        )
    )


async def _handle(arguments: StopMonitorInput, caller: Caller) -> dict[str, object]:
    ended = await monitors.monitor_stop(caller.project_id, arguments.session_id, caller=caller, save_log=arguments.save_log)
    return {**vars(ended), "session_id": str(ended.session_id)}


STOP_SESSION_MONITOR = Tool(
    name="stop_session_monitor",
    title="Stop monitoring a log file",
    description=(
        "Stops following a log file. Unless save_log is true the file is deleted, too, if it is a recording in the host's directory of"
        " session logs; any other log stays, and log_kept_reason says why."
    ),
    guidance="Give save_log=true whenever somebody may still want the log.",
    input_model=StopMonitorInput,
    output_model=StopMonitorOutput,
    handler=_handle,
    scopes=("monitor:read",),
    errors=(errors.SessionNotFound,),
    is_destructive=True,
)
