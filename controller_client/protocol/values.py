"""The parts that messages are made of: the envelope, closed sets of names, numbers and structs."""

from secrets import token_hex
from typing import Annotated, Final, Literal

import msgspec

from controller_client.protocol.limits import PROTOCOL_VERSION

Stream = Literal["stdout", "stderr"]
"""``stdout`` also carries everything a PTY shows; ``stderr`` exists in pipe mode only."""

PROVES_READERS: Final = "secret_readers"
"""Capability of a daemon or a holder: it types a stored secret only to a proven reader."""

TELLS_FOUND: Final = "session_found"
"""Capability of a daemon: it sends SESSION_FOUND once a holder answers that was silent at HELLO."""

NAMES_FILES: Final = "named_files"
"""Capability of a daemon: it answers NAME_FILES, and compares ``approved_files`` at a start."""

IoMode = Literal["pty", "pipe"]
OverflowPolicy = Literal["truncate", "block"]
PromptKind = Literal["line", "secret", "key", "screen", "shell"]
Evidence = Literal["kernel", "kernel+quiet", "heuristic"]
LiveState = Literal["running", "awaiting_input"]
StdinMode = Literal["open", "closed"]
DirectiveAction = Literal["continue", "terminate", "forget"]
GapReason = Literal["ring_overflow", "lost", "retention", "restored"]
"""``restored``: a server lost output that it had, and says so itself. A host says ``lost`` instead,
which every server knows.
"""
ResetReason = Literal["rotated", "truncated", "replaced"]
"""Why the next bytes of a log are not of the file that was read so far. ``rotated``: that file was
read to its end first. ``replaced``: the file is gone. ``truncated``: it was cut or rewritten.
"""
FileGapReason = Literal["truncated", "replaced", "hole"]
EndReason = Literal["exited", "terminated", "timed_out", "lost"]
"""``exited``: by itself, also by a signal that we did not send. ``terminated``: a TERMINATE_CMD
ended it. ``timed_out``: its lifetime ran out. ``lost``: its holder or host died.
"""

NOTE_NOTHING_LEFT = "nothing_left"
"""Note on a lost session: every process that it left is known, and none of them runs any more."""
NOTE_LEFT_RUNNING = "left_running"
"""Note on a program that ended by itself: ``survivors`` detached themselves on purpose, so they
live on.
"""
NOTE_LEFT_UNKNOWN = "left_unknown"
"""Note on a program that ended by itself: its host could not look for processes that it left, for
example because no descriptor was free.
"""

# The bounds are those of the columns that store the numbers. Anything else is a bad frame, wherever
# the frame is decoded.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""An offset, a size or a sequence number."""
Pid = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
ExitCode = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=2**31)]
# No shorter: a task sleeps for this long between two frames.
PaceSeconds = Annotated[float, msgspec.Meta(ge=0.01, le=2**31)]
WindowBytes = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
"""A stretch of time, not a date."""
WallSeconds = Annotated[float, msgspec.Meta(ge=0, le=2**37)]
"""A date: seconds since 1970, in UTC."""


def new_id() -> str:
    """Return a fresh frame id, a UUID of random digits."""
    # A turn makes several, and the class of the standard library would be most of their cost.
    digits = token_hex(16)
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


class Message(msgspec.Struct, kw_only=True, frozen=True, tag_field="type"):
    """The envelope that every message shares; ``messages`` explains its fields."""

    v: int = PROTOCOL_VERSION
    id: str = msgspec.field(default_factory=new_id)
    epoch: Count = 0


class FilePlace(msgspec.Struct, kw_only=True, frozen=True):
    """A position in a file that was read: its identity, and a mark of the bytes before it."""

    identity: str
    mark: str
    position: Count


class StreamOffset(msgspec.Struct, kw_only=True, frozen=True):
    """A position in one stream of one session."""

    session_id: str
    stream: Stream
    offset: Count


class StreamPosition(msgspec.Struct, kw_only=True, frozen=True):
    """The bytes ``[first_offset, next_offset)`` of a stream that a holder still has."""

    stream: Stream
    first_offset: Count
    next_offset: Count


class HostTime(msgspec.Struct, kw_only=True, frozen=True):
    """A moment as its host knows it: the wall clock, and the seconds since the host booted.

    Setting the time of the host moves ``wall`` alone. A session does not outlive the boot of its
    host, so the ``clock`` values of one session count from the same moment.
    """

    wall: WallSeconds
    clock: Seconds


class TerminalReport(msgspec.Struct, kw_only=True, frozen=True):
    """The holder's verdict on the program.

    It was taken when ``offset`` bytes had been produced and ``input_seq`` inputs applied. ``kind``
    and ``evidence`` are set exactly when ``state`` is ``awaiting_input``. ``prompt`` is the text
    left of the cursor; ``detail`` says what the program does, such as ``sleep[12]
    clock_nanosleep``.
    """

    state: LiveState
    offset: Count
    input_seq: Count
    kind: PromptKind | None = None
    evidence: Evidence | None = None
    prompt: str = ""
    detail: str = ""


class LifetimeReport(msgspec.Struct, kw_only=True, frozen=True):
    """The clock of a session's lifetime, as its holder measures it.

    ``left_seconds`` is the rest of the lifetime. While ``is_paused``, ``pause_left_seconds`` is the
    longest time until the clock runs on. Otherwise it is the time that pauses may still take.
    """

    left_seconds: Seconds
    is_paused: bool = False
    pause_left_seconds: Seconds = 0.0

    @property
    def longest_seconds(self) -> float:
        """Seconds until the lifetime is over if no other message changes its clock."""
        return self.left_seconds + (self.pause_left_seconds if self.is_paused else 0.0)


class SessionSummary(msgspec.Struct, kw_only=True, frozen=True):
    """One session as its host knows it, in HELLO."""

    session_id: str
    state: Literal["running", "done", "lost"]
    streams: list[StreamPosition]
    input_seq: Count
    pid: Pid | None = None
    lifetime: LifetimeReport | None = None


class SessionDirective(msgspec.Struct, kw_only=True, frozen=True):
    """The server's decision on a session that the controller named in HELLO.

    ``expected`` is the output that the server has committed. ``is_awaited``: the holder was silent,
    so no input is sent until SESSION_FOUND says how many inputs were applied.
    """

    session_id: str
    action: DirectiveAction
    expected: list[StreamOffset] = []
    is_awaited: bool = False


class StreamFinal(msgspec.Struct, kw_only=True, frozen=True):
    """One stream at its end: its length and the SHA-256 (hex) of every byte ever produced."""

    stream: Stream
    next_offset: Count
    sha256: str


class Failure(msgspec.Struct, kw_only=True, frozen=True):
    """A typed refusal: a stable ``code`` and a text for people.

    ``errno_name`` is set if the kernel refused, such as ``ENOENT``.
    """

    code: str
    message: str
    errno_name: str | None = None


class ResourceLimits(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Limits on the resources of a session; None leaves a limit to the host.

    ``processes`` and ``memory_bytes`` are of the session as a whole where the daemon owns a control
    group, else of the user's processes and of each process. ``file_size_bytes`` is of each file
    written, ``open_files`` of each process. A core file is never written.
    """

    processes: Count | None = None
    memory_bytes: Count | None = None
    file_size_bytes: Count | None = None
    open_files: Count | None = None


class ProjectRules(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The rules of the project for a start; the host applies them beside its own policy.

    None allows anything. ``commands`` has entries as in ``controller_client.command_policy``. A
    program may be started in ``directories`` only. If the server has not committed output after
    ``strict_seconds``, the host ends the program; with None the program waits as long as it takes.
    """

    commands: list[str] | None = None
    directories: list[str] | None = None
    strict_seconds: float | None = None


class Admission(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """*Host only.* The decision of the host's policy on a start, for its holder.

    ``program`` is the file to execute with the start's ``argv``. The working directory has to be in
    one of each list of ``roots``. ``takes_lines``: the program is a shell, so typed input is
    checked as command lines. ``keeps_user``: no process of the session may become another user.
    ``run_as``: the user of the program, if it is not the daemon's.
    """

    program: str | None = None
    roots: list[list[str]] = []
    takes_lines: bool = False
    keeps_user: bool = False
    run_as: str | None = None


class NamedFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that a command line names, and the SHA-256 of its content in hexadecimal digits.

    The digest is empty if the file is too large, or cannot be read.
    """

    path: str
    sha256: str = ""
