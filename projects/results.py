"""What the services give back. Offsets and sizes are bytes of the terminal's stream; ``output`` is a view of ``[offset, next_offset)``."""

import signal
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from controller_client.protocol.messages import Evidence, PromptKind

TerminalState = Literal["running", "awaiting_input", "exited"]
View = Literal["text", "raw", "screen"]


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What the program asks: ``text`` is what stands left of the cursor, ``evidence`` how we know that it waits."""

    kind: PromptKind
    text: str
    evidence: Evidence


@dataclass(frozen=True, kw_only=True)
class LostRange:
    """Bytes ``[from_offset, to_offset)`` that are gone, and why."""

    from_offset: int
    to_offset: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where the cursor stands in the ``screen`` view; both count from 0."""

    row: int
    column: int


@dataclass(frozen=True, kw_only=True)
class InteractiveOutputResult:
    """A session's terminal after one call. Nothing is ever consumed: any range can be read again by its offset.

    ``omitted_bytes`` in the middle of ``output`` were left out to fit the budget; they start at ``omitted_offset``.
    ``activity`` says what a running program does, such as ``sleep[12] clock_nanosleep``. ``duration_ms`` is the session's age.
    ``operator`` has taken the session over, and alone may type.
    """

    session_id: UUID
    state: TerminalState
    output: str
    offset: int
    next_offset: int
    total_bytes: int
    truncated: bool
    omitted_bytes: int
    omitted_offset: int | None
    gaps: tuple[LostRange, ...]
    prompt: Prompt | None
    activity: str
    is_alive: bool
    exit_code: int | None
    signal: str | None
    end_reason: str | None
    duration_ms: int
    hint: str
    output_base64: str | None = None
    cursor: Cursor | None = None
    operator: str | None = None


@dataclass(frozen=True, kw_only=True)
class InteractiveCommandResult(InteractiveOutputResult):
    """The first turn of a session that was just started."""


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """A program that is over. ``return_code`` is the exit code, or minus the signal's number, or None if nobody knows."""

    success: bool
    stdout: str
    stderr: str
    return_code: int | None
    duration_ms: int


def return_code_of(exit_code: int | None, signal_name: str | None) -> int | None:
    """The exit code, or minus the number of the signal that killed the program, or None."""
    if signal_name and signal_name in signal.Signals.__members__:
        return -signal.Signals[signal_name].value
    return exit_code
