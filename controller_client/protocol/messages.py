"""Every message of the controller protocol, version 1, and the ends that may send each.

Envelope, on every message: ``v`` (protocol version), ``type`` (the tag below), ``id`` (uuid of this
frame), ``epoch`` (the connection's fence: 0 until WELCOME, and always 0 between daemon and holder).

``seq`` on a server-to-controller command is its dense number in the controller's outbox; the reply
that settles the command repeats it as ``command_seq``. Commands are delivered at least once, so
each is safe to repeat: START by the session's state directory, INPUT by ``input_seq``, the others
because they are idempotent.

The holder speaks the same messages to the daemon over its unix socket; messages marked *host only*
never leave the host. Units: offsets and sizes in bytes, times in seconds.

Messages of one direction stand in ``controller_messages`` and ``server_messages``, their values in
``values``. All are imported from here.
"""

from controller_client.protocol.controller_messages import (
    CommandAck,
    CommandResult,
    FileChunk,
    FileDeleted,
    FilesNamed,
    Gap,
    Hello,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    SessionFound,
    Started,
)
from controller_client.protocol.server_messages import (
    Ack,
    DeleteFile,
    DoneAck,
    NameFiles,
    PauseLifetime,
    ReadFile,
    Resize,
    RunCommand,
    SendInput,
    SessionCommand,
    StartInteractiveCmd,
    TerminateCmd,
    Welcome,
)
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
    HostTime,
    IoMode,
    LifetimeReport,
    LiveState,
    Message,
    NamedFile,
    OverflowPolicy,
    Pid,
    ProjectRules,
    PromptKind,
    ResetReason,
    ResourceLimits,
    Seconds,
    SessionDirective,
    SessionSummary,
    StdinMode,
    Stream,
    StreamFinal,
    StreamOffset,
    StreamPosition,
    TerminalReport,
    WindowBytes,
    new_id,
)

__all__ = (
    "Ack",
    "Admission",
    "AnyMessage",
    "CommandAck",
    "CommandResult",
    "Count",
    "DeleteFile",
    "DirectiveAction",
    "DoneAck",
    "Draining",
    "EndReason",
    "Error",
    "Evidence",
    "ExitCode",
    "Failure",
    "FileChunk",
    "FileDeleted",
    "FileGapReason",
    "FilePlace",
    "FilesNamed",
    "FromController",
    "FromHolder",
    "FromServer",
    "Gap",
    "GapReason",
    "Hello",
    "HolderAttach",
    "HolderDetach",
    "HolderHello",
    "HostTime",
    "InputAck",
    "InteractiveCmdDone",
    "InteractiveOutput",
    "IoMode",
    "LifetimeReport",
    "LiveState",
    "Message",
    "NameFiles",
    "NamedFile",
    "OverflowPolicy",
    "PauseLifetime",
    "Pid",
    "Ping",
    "Pong",
    "ProjectRules",
    "PromptKind",
    "ReadFile",
    "ResetReason",
    "Resize",
    "ResourceLimits",
    "RunCommand",
    "Seconds",
    "SendInput",
    "SessionCommand",
    "SessionDirective",
    "SessionFound",
    "SessionSummary",
    "StartInteractiveCmd",
    "Started",
    "StdinMode",
    "Stream",
    "StreamFinal",
    "StreamOffset",
    "StreamPosition",
    "TerminalReport",
    "TerminateCmd",
    "ToHolder",
    "Welcome",
    "new_id",
)


class Ping(Message, frozen=True, tag="PING"):
    """Ask whether the other side is alive; the answer is PONG.

    ``echo``: the host answers when one of its terminals has echoed.
    """

    echo: bool = False


class Pong(Message, frozen=True, tag="PONG"):
    """Answer to PING, with the load of the host."""

    reply_to: str
    sessions: Count = 0
    backlog_bytes: Count = 0
    echoed: bool = False
    policy: str = ""
    is_stopped: bool = False


class Draining(Message, frozen=True, tag="DRAINING"):
    """The sender is about to close on purpose; reconnect with jitter."""

    reason: str = ""


class Error(Message, frozen=True, tag="ERROR"):
    """Always sent before a close; ``reply_to`` names the offending frame where it is known."""

    code: str
    message: str
    reply_to: str | None = None


class HolderHello(Message, frozen=True, tag="HOLDER_HELLO"):
    """*Host only.* The first frame of a holder to a daemon that connected.

    Carries the state of the session and the capabilities of the holder.
    """

    summary: SessionSummary
    capabilities: list[str] = []


class HolderAttach(Message, frozen=True, tag="HOLDER_ATTACH"):
    """*Host only.* Send output from these offsets on, and DONE again if it is due.

    At most ``window_bytes`` of output may be un-acknowledged.
    """

    session_id: str
    window_bytes: WindowBytes
    offsets: list[StreamOffset]


class HolderDetach(Message, frozen=True, tag="HOLDER_DETACH"):
    """*Host only.* The server is out of reach: keep output until the next HOLDER_ATTACH."""

    session_id: str


FromController = (
    Hello
    | Started
    | InteractiveOutput
    | Gap
    | InputAck
    | CommandAck
    | SessionFound
    | InteractiveCmdDone
    | CommandResult
    | FileChunk
    | FileDeleted
    | FilesNamed
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
    | PauseLifetime
    | ReadFile
    | DeleteFile
    | NameFiles
    | Ping
    | Pong
    | Draining
    | Error
)
FromHolder = (
    HolderHello
    | Started
    | InteractiveOutput
    | Gap
    | InputAck
    | CommandAck
    | InteractiveCmdDone
    | CommandResult
    | Error
)
ToHolder = (
    HolderAttach
    | HolderDetach
    | Ack
    | DoneAck
    | SendInput
    | TerminateCmd
    | Resize
    | PauseLifetime
    | Error
)
AnyMessage = FromController | FromServer | FromHolder | ToHolder
