"""Messages that a controller sends to the server. ``messages`` names all, with their directions."""

from controller_client.protocol.values import (
    Count,
    EndReason,
    ExitCode,
    Failure,
    FileGapReason,
    GapReason,
    HostTime,
    IoMode,
    LifetimeReport,
    Message,
    NamedFile,
    Pid,
    ResetReason,
    SessionSummary,
    Stream,
    StreamFinal,
    TerminalReport,
)


class Hello(Message, frozen=True, tag="HELLO"):
    """The first frame of a connection.

    The server answers WELCOME within HELLO_DEADLINE_SECONDS, or closes. ``lock_id`` names the lock
    of the state directory, which a copy of the directory does not have; empty from older daemons.
    """

    versions: list[int]
    client_version: str
    instance_id: str
    boot_id: str
    os: str
    platform: str
    hostname: str
    capabilities: list[str]
    last_cmd_seq: Count
    sessions: list[SessionSummary]
    log_roots: list[str] | None = None
    lock_id: str = ""


class Started(Message, frozen=True, tag="STARTED"):
    """The program runs (``pid``), or could not be started (``failure``: ``START_FAILED`` and kin).

    ``io_mode`` is the mode that the program really has. ``warning`` gives the reason if another
    mode was asked for.
    """

    session_id: str
    command_seq: Count
    pid: Pid | None = None
    io_mode: IoMode = "pty"
    warning: str | None = None
    failure: Failure | None = None
    lifetime: LifetimeReport | None = None


class InteractiveOutput(Message, frozen=True, tag="INTERACTIVE_OUTPUT"):
    """Bytes ``[offset, offset + len(data))`` of a stream, and the verdict on the program.

    ``data`` is empty if only the verdict changed. ``seq`` counts the output frames of a session in
    the order of their production, across its streams. After a resend only the order still holds:
    the resent bytes may be cut into other frames.

    ``at`` is when the program wrote the first byte, also if it is sent again. ``terminal_at`` is
    when the verdict was made. A holder from before these fields sends neither.
    """

    session_id: str
    stream: Stream
    offset: Count
    seq: Count
    data: bytes = b""
    terminal: TerminalReport | None = None
    at: HostTime | None = None
    terminal_at: HostTime | None = None


class Gap(Message, frozen=True, tag="GAP"):
    """Bytes ``[from_offset, to_offset)`` of a stream are gone."""

    session_id: str
    stream: Stream
    from_offset: Count
    to_offset: Count
    reason: GapReason


class InputAck(Message, frozen=True, tag="INPUT_ACK"):
    """The kernel took ``accepted_bytes`` of input ``input_seq``.

    Without a ``failure`` that is the whole input, with one the part that was typed before it. The
    program had written ``offset`` bytes by then.
    """

    session_id: str
    command_seq: Count
    input_seq: Count
    accepted_bytes: Count = 0
    failure: Failure | None = None
    offset: Count | None = None
    at: HostTime | None = None


class CommandAck(Message, frozen=True, tag="COMMAND_ACK"):
    """TERMINATE_CMD, RESIZE or PAUSE_LIFETIME was carried out (``failure`` is None) or refused.

    ``lifetime`` is the clock after a PAUSE_LIFETIME, also after one that changed nothing. The
    program had written ``offset`` bytes by then.
    """

    session_id: str
    command_seq: Count
    failure: Failure | None = None
    lifetime: LifetimeReport | None = None
    offset: Count | None = None
    at: HostTime | None = None


class SessionFound(Message, frozen=True, tag="SESSION_FOUND"):
    """A holder that was silent at HELLO has answered, or is dead.

    ``input_seq`` is the last input that the holder applied; 0 if the holder is dead. This is sent
    of awaited sessions only, and before any other message about the session.
    """

    session_id: str
    input_seq: Count


class InteractiveCmdDone(Message, frozen=True, tag="INTERACTIVE_CMD_DONE"):
    """The program ended; sent again until DONE_ACK.

    Exactly one of ``exit_code`` and ``signal`` (a name such as ``SIGKILL``) is set, unless the
    session is lost.
    """

    session_id: str
    end_reason: EndReason
    exit_code: ExitCode | None = None
    signal: str | None = None
    streams: list[StreamFinal] = []
    survivors: list[str] = []
    notes: list[str] = []
    duration_seconds: float = 0.0
    at: HostTime | None = None


class CommandResult(InteractiveCmdDone, frozen=True, tag="COMMAND_RESULT"):
    """The end of a RUN_COMMAND: INTERACTIVE_CMD_DONE with its duration and a timeout flag."""

    timed_out: bool = False
    duration_ms: Count = 0


class FileChunk(Message, frozen=True, tag="FILE_CHUNK"):
    """Answer to READ_FILE: bytes ``[position, position + len(data))`` of the file ``identity``.

    UTF-8 characters are whole, except at the end of a file. ``mark`` identifies the bytes just
    before the end of ``data``. ``reset``: this is another file, or other content, than was asked
    for, and ``position`` counts anew. ``gap``: bytes after the requested position are not shown;
    ``gap_bytes`` is their number where it is known. ``late``: ``identity`` is one of ``former``,
    and the requested position still holds. If ``failure`` is set, no other field counts.
    """

    reply_to: str
    identity: str = ""
    position: Count = 0
    data: bytes = b""
    mark: str = ""
    has_more: bool = False
    reset: ResetReason | None = None
    gap: FileGapReason | None = None
    gap_bytes: Count | None = None
    late: bool = False
    failure: Failure | None = None


class FileDeleted(Message, frozen=True, tag="FILE_DELETED"):
    """Answer to DELETE_FILE: the file is gone, or it stays for the reason in ``failure``."""

    reply_to: str
    failure: Failure | None = None


class FilesNamed(Message, frozen=True, tag="FILES_NAMED"):
    """Answer to NAME_FILES: each program and script of the command line that is a plain file.

    What is closed to the daemon may be one, and is named without a digest.
    """

    reply_to: str
    files: list[NamedFile] = []
    failure: Failure | None = None
