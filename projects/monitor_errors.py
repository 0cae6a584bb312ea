"""What a caller can be told about monitors and the files of a host; leaves of the tree in ``projects.errors``::

    InvalidInput (400)          InvalidSessionId
    Forbidden (403)             FileNotReadable, PathNotAllowed
    NotFound (404)              LogNotFound
    Conflict (409)              SessionAlreadyExists, MonitorLimitReached, HostTooOld
    ControllerActionError (500) FileReadError
    Unavailable (503)           HostSilent

``LogNotFound`` and its kin name the path, as the caller gave it.
"""

from projects.errors import Conflict, ControllerActionError, Forbidden, InvalidInput, NotFound, Unavailable


class InvalidSessionId(InvalidInput):
    """Not a uuid as it is written in lower case."""

    code = "INVALID_SESSION_ID"
    hint = "Give a fresh UUID4, such as 3f2b8c1e-9d4a-4c6f-8a7b-1e2d3c4b5a69, in lower case."

    def __init__(self) -> None:
        super().__init__("Invalid session_id format")


class SessionAlreadyExists(Conflict):
    """The project has an active monitor of this id."""

    code = "SESSION_ALREADY_EXISTS"
    hint = "Read it with get_session_updates, or start another one under a fresh UUID4."

    def __init__(self, session_id: object) -> None:
        super().__init__(f"Session {session_id} already exists")


class MonitorLimitReached(Conflict):
    """The project has as many active monitors as it may have."""

    code = "MONITOR_LIMIT_REACHED"

    def __init__(self, limit: int, oldest: object) -> None:
        self.hint = f"Stop one that is no longer needed, with save_log to keep its log: stop_session_monitor(session_id='{oldest}')."
        super().__init__(f"this project may have {limit} active monitors")


class LogNotFound(NotFound):
    """A file that may be monitored is not there."""

    code = "FILE_NOT_FOUND"
    hint = "Check the path on the host; a log that is yet to be written has to be made first."

    def __init__(self, path: str) -> None:
        super().__init__(f"Log file not found: {path}")


class FileNotReadable(Forbidden):
    """The daemon's user may not read it."""

    code = "FILE_NOT_READABLE"
    hint = "Have the host's operator give the daemon's user the right to read it."

    def __init__(self, path: str) -> None:
        super().__init__(f"Cannot read log file: {path}")


class PathNotAllowed(Forbidden):
    """Outside of the host's log directories, or no regular file with one name; whether anything is there is not told."""

    code = "PATH_NOT_ALLOWED"
    hint = "Give the absolute path of a log in a directory that the host's operator opened (holdline-controller run --log-root)."

    def __init__(self) -> None:
        super().__init__("this path may not be monitored")


class FileReadError(ControllerActionError):
    """The log of a monitor cannot be read now: it was deleted, moved away or closed to the daemon."""

    code = "FILE_READ_ERROR"
    hint = "Nothing was skipped: the next call goes on at the same place. If the log is gone for good, stop the monitor."
    retryable = True

    def __init__(self) -> None:
        super().__init__("Failed to read log file")


class HostTooOld(Conflict):
    """Its daemon does not know files yet."""

    code = "HOST_TOO_OLD"
    hint = "Have the host's operator install the present holdline-controller."

    def __init__(self, name: str) -> None:
        super().__init__(f"the daemon on {name} cannot read files")


class HostSilent(Unavailable):
    """The host is connected, or was a moment ago, and did not answer."""

    code = "HOST_SILENT"
    hint = "Try again: nothing was skipped."

    def __init__(self) -> None:
        super().__init__("the host did not answer in time")
