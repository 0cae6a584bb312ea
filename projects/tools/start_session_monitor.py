"""``start_session_monitor``: follow a log file of a host.

Input, output and error codes are those of requirement 002.
"""

from typing import Annotated, Literal

from pydantic import Field

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.calls import RequestIdReused
from projects.errors.hosts import (
    ControllerAmbiguous,
    ControllerNotFound,
    ControllerOffline,
    ControllerRevoked,
    NoControllerEnrolled,
)
from projects.errors.uncertain import RequestNotKnown
from projects.monitors import errors as monitor_errors
from projects.monitors.start import MonitorStatus
from projects.tools.base import Tool, ToolInput
from projects.tools.terminal_arguments import RequestId

# Checked by the service, which answers with a code of its own.
UUID_PATTERN = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
HOST_ERRORS = (
    ControllerRevoked,
    ControllerOffline,
    monitor_errors.HostSilent,
    monitor_errors.HostTooOld,
    monitor_errors.PathNotAllowed,
    monitor_errors.LogDirectoryUnusable,
    monitor_errors.LogDirectoryForeign,
)


class StartMonitorInput(ToolInput):
    """The arguments that start_session_monitor takes."""

    session_id: Annotated[
        str,
        Field(
            description="Unique identifier for the session (UUID4 recommended)",
            json_schema_extra={"pattern": UUID_PATTERN},
        ),
    ]
    session_type: Annotated[
        Literal["ssh", "script", "file"], Field(description="Type of session being monitored")
    ]
    log_file: Annotated[str, Field(description="Absolute path to the session output log file")]
    metadata: Annotated[
        dict[str, str],
        Field(default_factory=dict, description="Optional session metadata (e.g., SSH host, user)"),
    ]
    controller: Annotated[
        str | None,
        Field(
            description=(
                "Name or id of the host the file is on; may be left out if the project has one."
            )
        ),
    ] = None
    start_at_end: Annotated[bool, Field(description="Skip what the file already contains.")] = False
    request_id: RequestId = None


async def _handle(arguments: StartMonitorInput, caller: Caller) -> MonitorStatus:
    return await services.monitor_start(
        caller.project_id,
        arguments.session_id,
        arguments.session_type,
        arguments.log_file,
        arguments.metadata,
        caller=caller,
        controller=arguments.controller,
        at_end=arguments.start_at_end,
        request_id=arguments.request_id,
    )


START_SESSION_MONITOR = Tool(
    name="start_session_monitor",
    title="Monitor a log file",
    description=(
        "Starts to follow a log file on a remote host, such as the recording of an ssh or script "
        "session. Read it with get_session_updates."
    ),
    guidance=(
        "Choose a fresh UUID4 as session_id. A monitor costs nothing while you do not read it."
    ),
    input_model=StartMonitorInput,
    output_model=MonitorStatus,
    handler=_handle,
    scopes=("monitor:read",),
    errors=(
        monitor_errors.SessionAlreadyExists,
        monitor_errors.MonitorLimitReached,
        monitor_errors.LogNotFound,
        monitor_errors.FileNotReadable,
        monitor_errors.InvalidSessionId,
        monitor_errors.FileReadError,
        RequestIdReused,
        RequestNotKnown,
        *HOST_ERRORS,
        ControllerNotFound,
        ControllerAmbiguous,
        NoControllerEnrolled,
    ),
)
