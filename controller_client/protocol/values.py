"""The values that messages carry: names with a closed set, bounded numbers, and the structs that are part of several messages."""

from typing import Annotated, Literal

import msgspec

Stream = Literal["stdout", "stderr"]
"""``stdout`` also carries everything a PTY shows; ``stderr`` exists in pipe mode only."""

IoMode = Literal["pty", "pipe"]
OverflowPolicy = Literal["truncate", "block"]
PromptKind = Literal["line", "secret", "key", "screen", "shell"]
Evidence = Literal["kernel", "kernel+quiet", "heuristic"]
LiveState = Literal["running", "awaiting_input"]
StdinMode = Literal["open", "closed"]
DirectiveAction = Literal["continue", "terminate", "forget"]
GapReason = Literal["ring_overflow", "lost", "retention"]
ResetReason = Literal["rotated", "truncated", "replaced"]
"""Why the next bytes of a log are not of the file that was read so far: ``rotated``: that one was read to its end first; ``replaced``: it
is gone; ``truncated``: it was cut or rewritten."""
FileGapReason = Literal["truncated", "replaced", "hole"]
EndReason = Literal["exited", "terminated", "timed_out", "lost"]
"""``exited``: by itself, also by a signal it did not get from us. ``terminated``: a TERMINATE_CMD ended it.
``timed_out``: its lifetime ran out. ``lost``: its holder or host died."""

# What is stored fits the columns it is stored in: anything else is a bad frame, wherever it is decoded.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""An offset, a size or a sequence number."""
Pid = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
ExitCode = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class FilePlace(msgspec.Struct, kw_only=True, frozen=True):
    """How far a file was read: its identity, a position, and a mark of the bytes before it."""

    identity: str
    mark: str
    position: Count


class StreamOffset(msgspec.Struct, kw_only=True, frozen=True):
    """A position in one stream of one session."""

    session_id: str
    stream: Stream
    offset: Count


class StreamPosition(msgspec.Struct, kw_only=True, frozen=True):
    """What a holder still has of one stream: ``[first_offset, next_offset)``."""

    stream: Stream
    first_offset: Count
    next_offset: Count


class TerminalReport(msgspec.Struct, kw_only=True, frozen=True):
    """The holder's verdict on the program, taken when ``offset`` bytes had been produced and ``input_seq`` inputs applied.

    ``kind`` and ``evidence`` are set exactly when ``state`` is ``awaiting_input``. ``prompt`` is the text left of the cursor;
    ``detail`` says what the program does, such as ``sleep[12] clock_nanosleep``.
    """

    state: LiveState
    offset: Count
    input_seq: Count
    kind: PromptKind | None = None
    evidence: Evidence | None = None
    prompt: str = ""
    detail: str = ""


class SessionSummary(msgspec.Struct, kw_only=True, frozen=True):
    """One session as its host knows it, in HELLO."""

    session_id: str
    state: Literal["running", "done", "lost"]
    streams: list[StreamPosition]
    input_seq: Count
    pid: Pid | None = None


class SessionDirective(msgspec.Struct, kw_only=True, frozen=True):
    """What the controller is to do with a session it named in HELLO; ``expected`` is what the server has committed."""

    session_id: str
    action: DirectiveAction
    expected: list[StreamOffset] = []


class StreamFinal(msgspec.Struct, kw_only=True, frozen=True):
    """One stream at its end: its length and the SHA-256 (hex) of every byte ever produced."""

    stream: Stream
    next_offset: Count
    sha256: str


class Failure(msgspec.Struct, kw_only=True, frozen=True):
    """A typed refusal: stable ``code``, text for people, and the errno name where the kernel said no."""

    code: str
    message: str
    errno_name: str | None = None


class ResourceLimits(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What a session may use on its host; None leaves it to the host. A core file is never written.

    ``processes`` and ``memory_bytes`` are of the session as a whole where the daemon owns a control group, else of the
    user's processes and of each process; ``file_size_bytes`` is of each file written, ``open_files`` of each process.
    """

    processes: Count | None = None
    memory_bytes: Count | None = None
    file_size_bytes: Count | None = None
    open_files: Count | None = None


class ProjectRules(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """What the project allows; the host applies it beside its own policy. None: anything.

    Entries of ``commands`` are those of ``controller_client.command_policy``; ``directories`` are where a program may be started. Output
    that the server has not committed after ``strict_seconds`` ends its program; None: it waits for as long as it takes.
    """

    commands: list[str] | None = None
    directories: list[str] | None = None
    strict_seconds: float | None = None


class Admission(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """*Host only.* What the host's policy made of a start, for its holder.

    ``program`` is the file to execute with the start's ``argv``. The working directory has to be in one of each list of ``roots``.
    ``takes_lines``: the program is a shell, so what is typed is checked as command lines. ``keeps_user``: nothing that
    it runs becomes another user.
    """

    program: str | None = None
    roots: list[list[str]] = []
    takes_lines: bool = False
    keeps_user: bool = False
