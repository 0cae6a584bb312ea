"""What can be wrong in the daemon, as a tree::

    DaemonError
    ├── ConfigurationError        what the operator gave us cannot be used; exit code 78
    │   └── AlreadyRunning        another daemon has this state directory
    ├── EnrolmentFailed           the server gave no credential; exit code 1
    ├── ServerUnreachable         no connection; try again soon
    │   └── ServerRefused         the server said no: HTTP status or close code; try again much later
    └── HolderUnreachable         a session's holder cannot be talked to

Texts never contain credentials, input or output.
"""

from typing import ClassVar

EXIT_OK = 0
EXIT_REFUSED = 1
EXIT_USAGE = 64
EXIT_CONFIG = 78


class DaemonError(Exception):
    """Root of the daemon's errors."""

    code: ClassVar[str] = "DAEMON_ERROR"


class ConfigurationError(DaemonError):
    """The daemon cannot run as it is set up; the text says what to change."""

    code = "CONFIGURATION"


class AlreadyRunning(ConfigurationError):
    """Two daemons on one state directory would both talk to its holders."""

    code = "ALREADY_RUNNING"

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        super().__init__(f"another daemon is running on {state_dir}; stop it, or give this one its own --state-dir")


class EnrolmentFailed(DaemonError):
    """The server could not be asked for a credential, or refused; the text says which, and never holds a code or a credential."""

    code = "ENROLMENT_FAILED"


class ServerUnreachable(DaemonError):
    """The connection could not be made, or was lost."""

    code = "SERVER_UNREACHABLE"


class ServerRefused(ServerUnreachable):
    """The server does not want this daemon; ``status`` is an HTTP status or a WebSocket close code."""

    code = "SERVER_REFUSED"

    def __init__(self, status: int, reason: str = "") -> None:
        self.status = status
        self.reason = reason
        super().__init__(f"the server refused the connection ({status}{': ' if reason else ''}{reason})")


class HolderUnreachable(DaemonError):
    """No holder answers in a session's directory."""

    code = "HOLDER_UNREACHABLE"

    def __init__(self, session_id: str, reason: str) -> None:
        self.session_id = session_id
        self.reason = reason
        super().__init__(f"the holder of session {session_id} cannot be reached: {reason}")
