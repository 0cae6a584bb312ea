"""Every message of the controller protocol, version 1.

Envelope, on every message: ``v`` (protocol version), ``type`` (the tag below), ``id`` (uuid of this frame),
``epoch`` (the connection's fence: 0 until WELCOME, and always 0 between daemon and holder).

``seq`` on a server-to-controller command is its dense number in the controller's outbox; the reply that settles the
command repeats it as ``command_seq``. Commands are delivered at least once, so each is safe to repeat: START by
the session's state directory, INPUT by ``input_seq``, the others because they are idempotent.

The holder speaks the same messages to the daemon over its unix socket; messages marked *host only* never leave the host.
Units: offsets and sizes in bytes, times in seconds.
"""

from uuid import uuid4

import msgspec

from controller_client.protocol.limits import PROTOCOL_VERSION
from controller_client.protocol.values import (
    Admission,
    Count,
    DirectiveAction,
    EndReason,
    Evidence,
    ExitCode,
    Failure,
    FileGapReason,
    FilePlace,
    GapReason,
    IoMode,
    LiveState,
    OverflowPolicy,
    Pid,
    ProjectRules,
    PromptKind,
    ResetReason,
    ResourceLimits,
    SessionDirective,
    SessionSummary,
    StdinMode,
    Stream,
    StreamFinal,
    StreamOffset,
    StreamPosition,
    TerminalReport,
)

# Whoever handles a message needs its values too, and finds them here.
__all__ = (
    "Admission",
    "Count",
    "DirectiveAction",
    "EndReason",
    "Evidence",
    "ExitCode",
    "Failure",
    "FileGapReason",
    "FilePlace",
    "GapReason",
    "IoMode",
    "LiveState",
    "OverflowPolicy",
    "Pid",
    "ProjectRules",
    "PromptKind",
    "ResetReason",
    "ResourceLimits",
    "SessionDirective",
    "SessionSummary",
    "StdinMode",
    "Stream",
    "StreamFinal",
    "StreamOffset",
    "StreamPosition",
    "TerminalReport",
)


def new_id() -> str:
    """A fresh frame id."""
    return str(uuid4())


class Message(msgspec.Struct, kw_only=True, frozen=True, tag_field="type"):
    """Envelope shared by every message."""

    v: int = PROTOCOL_VERSION
    id: str = msgspec.field(default_factory=new_id)
    epoch: Count = 0


# ---- controller to server ------------------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="HELLO"):
    """First frame of a connection; the server answers WELCOME within HELLO_DEADLINE_SECONDS or closes."""

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


class Started(Message, frozen=True, tag="STARTED"):
    """The program runs (``pid``), or could not be started (``failure``: ``START_FAILED`` and kin).

    ``io_mode`` is what the program really got; ``warning`` says why, where that is not what was asked for.
    """

    session_id: str
    command_seq: Count
    pid: Pid | None = None
    io_mode: IoMode = "pty"
    warning: str | None = None
    failure: Failure | None = None


class InteractiveOutput(Message, frozen=True, tag="INTERACTIVE_OUTPUT"):
    """Bytes ``[offset, offset + len(data))`` of a stream; ``data`` may be empty when only the verdict changed.

    ``seq`` counts a session's output frames in the order they were produced, across its streams. It survives a resend only
    as an order: a resent stretch may be cut into other frames.
    """

    session_id: str
    stream: Stream
    offset: Count
    seq: Count
    data: bytes = b""
    terminal: TerminalReport | None = None


class Gap(Message, frozen=True, tag="GAP"):
    """Bytes ``[from_offset, to_offset)`` are gone."""

    session_id: str
    stream: Stream
    from_offset: Count
    to_offset: Count
    reason: GapReason


class InputAck(Message, frozen=True, tag="INPUT_ACK"):
    """The kernel took all of input ``input_seq`` (``accepted_bytes``), or it was refused as a whole (``failure``)."""

    session_id: str
    command_seq: Count
    input_seq: Count
    accepted_bytes: Count = 0
    failure: Failure | None = None


class CommandAck(Message, frozen=True, tag="COMMAND_ACK"):
    """TERMINATE_CMD or RESIZE was carried out (``failure`` is None) or refused."""

    session_id: str
    command_seq: Count
    failure: Failure | None = None


class InteractiveCmdDone(Message, frozen=True, tag="INTERACTIVE_CMD_DONE"):
    """The program ended: exactly one of ``exit_code`` and ``signal`` (a name such as ``SIGKILL``) unless lost. Resent until DONE_ACK."""

    session_id: str
    end_reason: EndReason
    exit_code: ExitCode | None = None
    signal: str | None = None
    streams: list[StreamFinal] = []
    survivors: list[str] = []
    notes: list[str] = []
    duration_seconds: float = 0.0


class CommandResult(InteractiveCmdDone, frozen=True, tag="COMMAND_RESULT"):
    """The end of a RUN_COMMAND: INTERACTIVE_CMD_DONE with the two things a one-shot is asked for."""

    timed_out: bool = False
    duration_ms: Count = 0


class FileChunk(Message, frozen=True, tag="FILE_CHUNK"):
    """Answer to READ_FILE: bytes ``[position, position + len(data))`` of the file ``identity``.

    Characters of UTF-8 are whole, unless the file is over. ``mark`` stands for what is just before the end of ``data``. ``reset``: this
    is not the file, or not the content, that was asked for, and ``position`` counts anew. ``gap``: bytes after the place asked for are not
    shown, ``gap_bytes`` of them where that is known. ``late``: ``identity`` is one of ``former``, and the place that was asked for stays.
    With a ``failure`` nothing else counts.
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
    """Answer to DELETE_FILE: the file is gone, or it stays for this ``failure``."""

    reply_to: str
    failure: Failure | None = None


class Pong(Message, frozen=True, tag="PONG"):
    """Answer to PING: the load of the host's side."""

    reply_to: str
    sessions: Count = 0
    backlog_bytes: Count = 0


# ---- server to controller ------------------------------------------------------------------------------------------


class Welcome(Message, frozen=True, tag="WELCOME"):
    """The connection is accepted under ``epoch``; every number both sides need, and what to do with each session of HELLO."""

    heartbeat_seconds: float
    lease_seconds: float
    session_window_bytes: int
    connection_window_bytes: int
    sessions: list[SessionDirective]


class StartInteractiveCmd(Message, frozen=True, tag="START_INTERACTIVE_CMD"):
    """Start a program: ``command`` (a command line) or ``argv`` (run as it is), never both. Older than ``ttl_seconds``: not started.

    ``stdin_data`` is written first; with ``stdin`` closed it is all the program ever gets. ``pipe_fallback``: where no terminal can
    be had the program gets pipes, and STARTED says so.
    """

    seq: Count
    session_id: str
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


class RunCommand(Message, frozen=True, tag="RUN_COMMAND"):
    """Run a program on pipes to its end: ``input`` is written and its standard input closed. Ends with COMMAND_RESULT.

    On its host it is a session as any other: STARTED, output while it runs, and TERMINATE_CMD are the same.
    """

    seq: Count
    session_id: str
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


class Ack(Message, frozen=True, tag="ACK"):
    """Cumulative: everything before each offset is committed on the server."""

    offsets: list[StreamOffset]


class DoneAck(Message, frozen=True, tag="DONE_ACK"):
    """The end of these sessions is committed; the host may forget them."""

    session_ids: list[str]


class SendInput(Message, frozen=True, tag="SEND_INPUT"):
    """Type ``data``, or the named ``keys``, or a ``secret``; ``eof`` ends the input after it.

    A secret is typed only while the terminal asks for one, unless it ``may_echo``. From then on output that shows it is masked.

    *Host only:* ``refused`` says that the host's policy does not let it pass; ``is_line_checked`` that it did, as whole command
    lines, which holds as long as no earlier input was typed in part.
    """

    seq: Count
    session_id: str
    input_seq: Count
    data: bytes = b""
    keys: list[str] = []
    secret: bytes | None = None
    may_echo: bool = False
    eof: bool = False
    refused: Failure | None = None
    is_line_checked: bool = False

    def __repr__(self) -> str:
        """Without anything that is typed: this may get into a traceback."""
        return f"SendInput(seq={self.seq}, session_id={self.session_id!r}, input_seq={self.input_seq})"


class TerminateCmd(Message, frozen=True, tag="TERMINATE_CMD"):
    """Signal the whole process tree; with ``escalate``, KILL what is left after ``grace_seconds``."""

    seq: Count
    session_id: str
    signal: str = "SIGTERM"
    escalate: bool = True
    grace_seconds: float = 5.0


class Resize(Message, frozen=True, tag="RESIZE"):
    """New size of the terminal."""

    seq: Count
    session_id: str
    rows: int
    cols: int


class ReadFile(Message, frozen=True, tag="READ_FILE"):
    """Read a log from ``position`` of the file that had the name ``path`` when its ``identity`` and ``mark`` were given.

    Without an ``identity``: of the file that has it now, and without a ``position`` from its end. While there is nothing, wait up to
    ``wait_seconds`` for some. ``former``: files that had the name before and were read to their ends, which may have grown since. The host
    remembers nothing of it.
    """

    path: str
    identity: str = ""
    mark: str = ""
    position: Count | None = 0
    max_bytes: Count = 65_536
    wait_seconds: float = 0.0
    former: list[FilePlace] = []


class DeleteFile(Message, frozen=True, tag="DELETE_FILE"):
    """Delete a session's log if it is this very file, and one that the host lets anybody delete."""

    path: str
    identity: str


class Ping(Message, frozen=True, tag="PING"):
    """Liveness; answered with PONG."""


# ---- both directions -----------------------------------------------------------------------------------------------


class Draining(Message, frozen=True, tag="DRAINING"):
    """The sender is about to close on purpose; reconnect with jitter."""

    reason: str = ""


class Error(Message, frozen=True, tag="ERROR"):
    """Always sent before a close; ``reply_to`` names the offending frame where it is known."""

    code: str
    message: str
    reply_to: str | None = None


# ---- host only: daemon <-> holder ------------------------------------------------------------------------------------


class HolderHello(Message, frozen=True, tag="HOLDER_HELLO"):
    """*Host only.* First frame of a holder to a daemon that connected: what this session has."""

    summary: SessionSummary


class HolderAttach(Message, frozen=True, tag="HOLDER_ATTACH"):
    """*Host only.* Send output from these offsets on, within ``window_bytes`` un-acknowledged; send DONE again if it is due."""

    session_id: str
    window_bytes: int
    offsets: list[StreamOffset]


class HolderDetach(Message, frozen=True, tag="HOLDER_DETACH"):
    """*Host only.* The server is out of reach: keep output, send nothing until the next HOLDER_ATTACH."""

    session_id: str


FromController = (
    Hello
    | Started
    | InteractiveOutput
    | Gap
    | InputAck
    | CommandAck
    | InteractiveCmdDone
    | CommandResult
    | FileChunk
    | FileDeleted
    | Ping
    | Pong
    | Draining
    | Error
)
FromServer = (
    Welcome
    | StartInteractiveCmd
    | RunCommand
    | Ack
    | DoneAck
    | SendInput
    | TerminateCmd
    | Resize
    | ReadFile
    | DeleteFile
    | Ping
    | Pong
    | Draining
    | Error
)
FromHolder = HolderHello | Started | InteractiveOutput | Gap | InputAck | CommandAck | InteractiveCmdDone | CommandResult | Error
ToHolder = HolderAttach | HolderDetach | Ack | DoneAck | SendInput | TerminateCmd | Resize | Error
AnyMessage = FromController | FromServer | FromHolder | ToHolder
