"""Messages that the server sends to a controller. ``messages`` names all, with their directions."""

from controller_client.protocol.values import (
    Admission,
    Count,
    Failure,
    FilePlace,
    IoMode,
    Message,
    NamedFile,
    OverflowPolicy,
    PaceSeconds,
    ProjectRules,
    ResourceLimits,
    Seconds,
    SessionDirective,
    StdinMode,
    StreamOffset,
    WindowBytes,
)

_ENTER = b"\n"


class Welcome(Message, frozen=True, tag="WELCOME"):
    """The server accepts the connection under ``epoch``.

    Carries every number that both sides need, and a directive for each session of HELLO.
    """

    heartbeat_seconds: PaceSeconds
    lease_seconds: Seconds
    session_window_bytes: WindowBytes
    connection_window_bytes: WindowBytes
    sessions: list[SessionDirective]
    min_client_version: str = ""


class Ack(Message, frozen=True, tag="ACK"):
    """Cumulative: everything before each offset is committed on the server."""

    offsets: list[StreamOffset]


class DoneAck(Message, frozen=True, tag="DONE_ACK"):
    """The end of these sessions is committed; the host may forget them."""

    session_ids: list[str]


class SessionCommand(Message, frozen=True):
    """A command about one session, with its number in the outbox of the controller."""

    seq: Count
    session_id: str


class StartInteractiveCmd(SessionCommand, frozen=True, tag="START_INTERACTIVE_CMD"):
    """Start a program: ``command`` (a command line) or ``argv`` (run as it is), never both.

    A command that is older than ``ttl_seconds`` is not started. ``stdin_data`` is written first;
    if ``stdin`` is closed, the program never gets more. With ``pipe_fallback`` the program gets
    pipes where no terminal can be had, and STARTED says so.
    """

    command: str | None = None
    argv: list[str] | None = None
    cwd: str | None = None
    env: dict[str, str] = {}
    io_mode: IoMode = "pty"
    rows: int = 24
    cols: int = 120
    lifetime_seconds: float = 300.0
    ring_bytes: int = 10 * 1024 * 1024
    overflow: OverflowPolicy = "truncate"
    ttl_seconds: float = 30.0
    stdin: StdinMode = "open"
    stdin_data: bytes = b""
    limits: ResourceLimits = ResourceLimits()
    pipe_fallback: bool = False
    rules: ProjectRules = ProjectRules()
    admission: Admission | None = None
    approved_files: list[NamedFile] | None = None


class RunCommand(SessionCommand, frozen=True, tag="RUN_COMMAND"):
    """Run a program on pipes to its end; COMMAND_RESULT reports that end.

    ``input`` is written, and then the standard input is closed. On its host this is a session as
    any other: STARTED, output while the program runs, and TERMINATE_CMD are the same.
    """

    command: str | None = None
    argv: list[str] | None = None
    input: bytes = b""
    cwd: str | None = None
    env: dict[str, str] = {}
    timeout_seconds: float = 30.0
    ring_bytes: int = 10 * 1024 * 1024
    overflow: OverflowPolicy = "truncate"
    ttl_seconds: float = 30.0
    limits: ResourceLimits = ResourceLimits()
    rules: ProjectRules = ProjectRules()
    admission: Admission | None = None
    approved_files: list[NamedFile] | None = None


class SendInput(SessionCommand, frozen=True, tag="SEND_INPUT"):
    """Type ``data``, or the named ``keys``, or a ``secret``; ``eof`` ends the input after it.

    ``secret`` is a whole line: daemons and holders of every release type it as it comes, and their
    policy judges it as a line. ``secret_line`` makes the line of a value, ``secret_value`` gives
    the value back. A secret is typed only to a reader that is proven to take a line which no
    terminal shows, unless it ``may_echo``. If ``secret_programs`` (names or absolute paths) is set,
    the one reader must also be the program that the session was started with, and be in that list.
    From then on the value is masked in the output.

    *Host only:* ``secret_files`` are the files of these programs on this host. ``refused``: the
    policy of the host refused the input. ``is_line_checked``: the policy allowed the input as whole
    command lines, which holds as long as no earlier input was typed in part.
    """

    input_seq: Count
    data: bytes = b""
    keys: list[str] = []
    secret: bytes | None = None
    may_echo: bool = False
    eof: bool = False
    refused: Failure | None = None
    is_line_checked: bool = False
    secret_programs: list[str] = []
    secret_files: list[str] = []

    @staticmethod
    def secret_line(value: bytes) -> bytes:
        """The line to type for a secret: ``value``, which has no line break, and Enter."""
        return value + _ENTER

    @property
    def secret_value(self) -> bytes | None:
        """The value of the secret, which the output masks; None without a secret."""
        return None if self.secret is None else self.secret.removesuffix(_ENTER)

    def __repr__(self) -> str:
        """Leave out everything that is typed: this text may get into a traceback."""
        return (
            f"SendInput(seq={self.seq}, session_id={self.session_id!r}, input_seq={self.input_seq})"
        )


class TerminateCmd(SessionCommand, frozen=True, tag="TERMINATE_CMD"):
    """Signal the whole process tree.

    With ``escalate``, processes that are left after ``grace_seconds`` get a KILL.
    """

    signal: str = "SIGTERM"
    escalate: bool = True
    grace_seconds: float = 5.0


class Resize(SessionCommand, frozen=True, tag="RESIZE"):
    """Give the terminal of the session a new size."""

    rows: int
    cols: int


class PauseLifetime(SessionCommand, frozen=True, tag="PAUSE_LIFETIME"):
    """Pause or resume the clock of a session's lifetime.

    Sent only to hosts whose capabilities name ``lifetime_pause``. All pauses together last at most
    ``max_seconds``; after that the clock runs, whatever the last command said. A command whose
    ``seq`` is not higher than that of the last one came late or twice, and changes nothing.
    """

    is_paused: bool
    max_seconds: Seconds


class ReadFile(Message, frozen=True, tag="READ_FILE"):
    """Read a log from ``position`` of a file that ``identity`` and ``mark`` identify.

    ``path`` was the name of the file when ``identity`` and ``mark`` were given out. Without an
    ``identity`` the file is the one that has the name now, and without a ``position`` the reading
    begins at its end. If there are no bytes yet, wait up to ``wait_seconds`` for some. ``former``
    lists files that had the name before and were read to their ends; they may have grown since.
    The host keeps no state between two requests. Sent only to hosts whose capabilities name
    ``files``, as DELETE_FILE.
    """

    path: str
    identity: str = ""
    mark: str = ""
    position: Count | None = 0
    max_bytes: Count = 65_536
    wait_seconds: float = 0.0
    former: list[FilePlace] = []


class DeleteFile(Message, frozen=True, tag="DELETE_FILE"):
    """Delete a session's log, if it is still this file and the host lets anybody delete it."""

    path: str
    identity: str


class NameFiles(Message, frozen=True, tag="NAME_FILES"):
    """Name the files that a command line would run. Nothing is run.

    Sent only to hosts whose capabilities name ``named_files``, before a person is asked for an
    approval.
    """

    command: str
    cwd: str | None = None
