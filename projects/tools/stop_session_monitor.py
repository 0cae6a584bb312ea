"""``stop_session_monitor``: stop following a log.

The log is deleted if it is a session's recording and nobody wants to keep it.
"""

from typing import Annotated

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.errors.uncertain import RequestNotKnown
from projects.monitors import errors as monitor_errors
from projects.monitors.stop import MonitorEnd
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_arguments import RequestId


class StopMonitorInput(ToolInput):
    """The arguments that stop_session_monitor takes."""

    session_id: Annotated[str, Field(description="Session ID to stop")]
    save_log: Annotated[
        bool, Field(description="Whether to preserve log file (default: false)")
    ] = False
    request_id: RequestId = None


async def _handle(arguments: StopMonitorInput, caller: Caller) -> MonitorEnd:
    return await services.monitor_stop(
        caller.project_id,
        arguments.session_id,
        caller=caller,
        save_log=arguments.save_log,
        request_id=arguments.request_id,
    )


STOP_SESSION_MONITOR = Tool(
    name="stop_session_monitor",
    title="Stop monitoring a log file",
    description=(
        "Stops following a log file. Unless save_log is true the file is deleted, too, if it is a "
        "recording in the host's directory of"
        " session logs; any other log stays, and log_kept_reason says why."
    ),
    guidance="Give save_log=true whenever somebody may still want the log.",
    input_model=StopMonitorInput,
    output_model=MonitorEnd,
    handler=_handle,
    scopes=("monitor:read",),
    errors=(monitor_errors.MonitorNotFound, RequestIdReused, RequestNotKnown),
    is_destructive=True,
)
