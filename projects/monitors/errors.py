"""Refusals that are about monitors and the files of a host.

Leaves of the tree in ``projects.errors.base``::

    InvalidInput (400)           InvalidSessionId
    Forbidden (403)              FileNotReadable, PathNotAllowed, LogDirectoryUnusable,
                                 LogDirectoryForeign
    NotFound (404)               LogNotFound, MonitorNotFound
    Conflict (409)               SessionAlreadyExists, MonitorLimitReached, HostTooOld
    ControllerActionError (500)  FileReadError
    Unavailable (503)            HostSilent

Paths are named as the caller gave them.
"""

from collections.abc import Sequence

from projects.errors.base import (
    Conflict,
    ControllerActionError,
    Forbidden,
    InvalidInput,
    NotFound,
    Unavailable,
    listed,
)
from projects.errors.shown_tools import said


class InvalidSessionId(InvalidInput):
    """The id of a new monitor is no UUID in lower case."""

    code = "INVALID_SESSION_ID"
    hint = "Give a fresh UUID4, such as 3f2b8c1e-9d4a-4c6f-8a7b-1e2d3c4b5a69, in lower case."

    def __init__(self) -> None:
        super().__init__("Invalid session_id format")


class SessionAlreadyExists(Conflict):
    """The project has an active monitor of this id."""

    code = "SESSION_ALREADY_EXISTS"
    hint = (
        "To follow another log choose a fresh UUID4. get_session_updates reads the monitor "
        "that has this id."
    )

    def __init__(self, session_id: object) -> None:
        super().__init__(f"Session {session_id} already exists")


class MonitorNotFound(NotFound):
    """No active monitor of this id in the caller's project."""

    code = "SESSION_NOT_FOUND"
    hint = (
        "Check the id: its monitor was stopped, never existed, or belongs to another project. "
        "list_session_monitors lists the monitors of this project."
    )

    def __init__(self, session_id: object) -> None:
        super().__init__(f"Session {session_id} not found")


class MonitorLimitReached(Conflict):
    """The project has as many active monitors as it may have."""

    code = "MONITOR_LIMIT_REACHED"

    def __init__(self, limit: int, oldest: object) -> None:
        self.hint = said(
            "Stop one that is no longer needed. The oldest, keeping its log: "
            "stop_session_monitor(session_id='{oldest}', save_log=true). "
            "An operator raises the limit with the setting HOLDLINE_MAX_MONITORS.",
            oldest=oldest,
        )
        super().__init__(f"this project allows {limit} active monitors at a time")


class LogNotFound(NotFound):
    """The path is allowed, but there is no such file."""

    code = "FILE_NOT_FOUND"
    hint = "Check the path on the host. Create a log that no program has written yet first."

    def __init__(self, path: str) -> None:
        super().__init__(f"Log file not found: {path}")


class FileNotReadable(Forbidden):
    """The daemon's user may not read the file."""

    code = "FILE_NOT_READABLE"
    hint = "Have the host's operator give the daemon's user the right to read it."

    def __init__(self, path: str) -> None:
        super().__init__(f"Cannot read log file: {path}")


class PathNotAllowed(Forbidden):
    """The path is outside of the host's log directories, or no regular file with one hard link.

    The error does not tell whether such a file exists.
    """

    code = "PATH_NOT_ALLOWED"

    def __init__(self, log_roots: Sequence[str] | None = None) -> None:
        self.hint = (
            "Give the absolute path of a log in a directory that the host's operator opened "
            "(holdline-controller run --log-root)."
        )
        if log_roots:
            self.hint += f" Open on this host: {listed(log_roots)}"
        super().__init__("this path may not be monitored")


class LogDirectoryUnusable(Forbidden):
    """The log directory is closed to the daemon's user, or is missing.

    Nothing is known about its files.
    """

    code = "LOG_DIRECTORY_UNUSABLE"
    hint = (
        "The path may be right. Have the host's operator make this directory or open it to the "
        "daemon's user, or name another (holdline-controller run --session-logs or --log-root)."
    )

    def __init__(self) -> None:
        super().__init__(
            "the daemon of this host cannot use the log directory that this path is in"
        )


class LogDirectoryForeign(Forbidden):
    """Another local user owns the directory of session logs, or one below it.

    That user could write what callers read there.
    """

    code = "LOG_DIRECTORY_FOREIGN"
    hint = (
        "Have the host's operator give the directory to the daemon's user, choose another with "
        "--session-logs, or, if its owner is trusted, name it with --log-root too."
    )

    def __init__(self) -> None:
        super().__init__(
            "the directory of session logs belongs neither to the daemon's user, nor to the "
            "user of programs, nor to root"
        )


class FileReadError(ControllerActionError):
    """The log of a monitor was deleted, moved away or closed to the daemon's user."""

    code = "FILE_READ_ERROR"
    hint = (
        "Nothing was skipped: the next call continues at the same place. If the log is gone for "
        "good, stop the monitor."
    )
    retryable = True

    def __init__(self) -> None:
        super().__init__("Failed to read log file")


class HostTooOld(Conflict):
    """The daemon of this host is too old to read files."""

    code = "HOST_TOO_OLD"
    hint = "Have the host's operator install the current holdline-controller."

    def __init__(self, name: str) -> None:
        super().__init__(f"the daemon on {name} cannot read files")


class HostSilent(Unavailable):
    """The host is connected, or was a moment ago, and did not answer."""

    code = "HOST_SILENT"
    hint = "Try again: nothing was skipped."

    def __init__(self) -> None:
        super().__init__("the host did not answer in time")
