"""The wait of a turn: look, wait for the doorbell, look again, until the turn is over.

A turn is over when the program waits for input at the newest offset and after the caller's own
input, when the program ended, when ``wait_for`` matched new output, when the output budget is full,
or when the wait ran out. The look that finds the turn over also records what the caller was shown.
If the answer gets lost, a repeat under the same ``request_id`` begins where the lost one began.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeVar
from uuid import UUID

import re2

from controller_client.protocol.sentences import sentences
from controller_client.protocol.terminal_text.view import TextView
from projects.errors.calls import InvalidPattern
from projects.errors.uncertain import input_error
from projects.output import log as output_log
from projects.output.stream_text import StreamText
from projects.output.view import STDOUT, View, view_screen, view_turn
from projects.secrets.masks import mask_of, secret_mask
from projects.sessions.answers.hints import (
    hint_for,
    omitted_hint,
    refused_hint,
    takeover_hint,
    unsettled_hint,
    untyped_hint,
)
from projects.sessions.answers.prompt import prompt_of
from projects.sessions.answers.results import (
    InteractiveOutputResult,
    TerminalResult,
    TerminalState,
)
from projects.sessions.snapshot import Snapshot, session_snapshot
from projects.sessions.waiting import Cost, watch
from projects.storage import clock
from projects.storage.columns import as_parameter
from projects.storage.rows import execute
from projects.wakeups.doorbells import Doorbell

DEFAULT_WAIT_SECONDS: Final = 10.0
DEFAULT_OUTPUT_BYTES: Final = 32 * 1024
MAX_OUTPUT_BYTES: Final = 256 * 1024
MIN_OUTPUT_BYTES: Final = 256
MAX_PATTERN_CHARS: Final = 1000
_PATTERN_MEMORY_BYTES: Final = 1 << 20
_SHOWN: Final = (
    "UPDATE projects_commandsession SET shown_offset = %s WHERE id = %s AND shown_offset < %s"
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One call's wait on a session, whose output it shows from ``from_offset`` on.

    ``input_seq`` is the input whose answer is awaited; 0 for none. With ``is_poll`` an earlier call
    typed that input, so its refusal is no error of this call. ``until`` narrows the end of the
    wait: "end" is the end of the session, "settled" the host's answer to outbox command
    ``command_seq``. Unless ``is_showing``, the output does not count as shown to the caller.
    ``is_unentered``: the call typed text without Enter.
    """

    project_id: UUID
    session_id: UUID
    from_offset: int
    wait_seconds: float
    input_seq: int = 0
    is_poll: bool = False
    command_seq: int | None = None
    max_output_bytes: int = DEFAULT_OUTPUT_BYTES
    pattern: "Pattern | None" = None
    until: Literal["turn", "end", "settled"] = "turn"
    is_start: bool = False
    view: View = "text"
    is_showing: bool = True
    is_unentered: bool = False

    def look(self, is_last: bool) -> InteractiveOutputResult | None:
        """The result if the turn is over, or ``is_last``; else None. Runs in a database thread."""
        now = session_snapshot(
            self.project_id, self.session_id, input_seq=self.input_seq, command_seq=self.command_seq
        )
        _check_refusals(self, now)
        state = _state_after(self, now)
        if state is None:
            if not is_last:
                return None
            state = "awaiting_input" if _is_answered(self, now) else "running"
        return _conclude(self, now, state)


class Regex(Protocol):
    """A compiled expression of RE2, a library without types."""

    def search(self, text: str) -> object | None:
        """Find the first match in ``text``; None if there is none."""


@dataclass(slots=True)
class Pattern:
    """The ``wait_for`` of one turn, with the part of the turn's output that it has seen."""

    compiled: Regex
    seen_offset: int = -1
    text: TextView = field(default_factory=TextView)

    def matches(self, session_id: UUID, start: int, end: int) -> bool:
        """True if the text of ``[start, end)`` matches. Only output that is new is read."""
        position = max(start, self.seen_offset)
        data, _ = output_log.read_range(session_id, STDOUT, position, end)
        self.text.feed(data)
        self.seen_offset = end
        return self.compiled.search(secret_mask(session_id).masked(self.text.text)) is not None


def compile_pattern(wait_for: str | None) -> Pattern | None:
    """Compile a regular expression that matches in linear time. Raises InvalidPattern."""
    if wait_for is None or wait_for == "":
        return None
    if len(wait_for) > MAX_PATTERN_CHARS:
        raise InvalidPattern(
            f"longer than {MAX_PATTERN_CHARS} characters", hint="Give a shorter expression."
        )
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        return Pattern(re2.compile(wait_for, options))
    except (re2.error, UnicodeEncodeError, ValueError):
        # The message of the library is dropped: it quotes the pattern, which the caller knows.
        raise InvalidPattern("RE2 does not accept it") from None


async def take_turn(turn: Turn, bell: Doorbell, *, look_first: bool) -> InteractiveOutputResult:
    """Wait until the turn is over, and return its result.

    ``look_first`` is for a turn that may be over already, as a poll or a retry.
    """
    cost: Cost = "short"
    if turn.view == "screen" or turn.pattern is not None:
        cost = "open"
    elif turn.max_output_bytes > DEFAULT_OUTPUT_BYTES:
        cost = "long"
    return await watch(bell, turn.look, turn.wait_seconds, look_first=look_first, cost=cost)


def _check_refusals(turn: Turn, now: Snapshot) -> None:
    if now.command_failure_code and not turn.is_poll:
        raise input_error(now.command_failure_code, now.command_failure_message)
    if turn.is_start:
        now.check_begun()


def _state_after(turn: Turn, now: Snapshot) -> TerminalState | None:
    """The state in which the turn ended; None while it is not over."""
    if now.is_final:
        return "exited"
    if turn.until != "turn":
        is_over = turn.until == "settled" and now.is_command_settled
    elif _is_answered(turn, now):
        # A call that only waits also waits for the end of a takeover: until then the question is
        # for the operator.
        return None if turn.is_poll and now.taken_over_by else "awaiting_input"
    else:
        is_over = _has_enough(turn, now)
    if not is_over:
        return None
    return "awaiting_input" if _is_answered(turn, now) else "running"


def _has_enough(turn: Turn, now: Snapshot) -> bool:
    """True if the output budget is full, or if the pattern matches new output."""
    size = now.stdout_next_offset - turn.from_offset
    if size >= turn.max_output_bytes:
        return True
    return (
        turn.pattern is not None
        and size > 0
        and turn.pattern.matches(turn.session_id, turn.from_offset, now.stdout_next_offset)
    )


def _is_answered(turn: Turn, now: Snapshot) -> bool:
    # A refused input is never answered: the program still waits for what it waited for before. An
    # input that came after the end is no such case: the end is only not known here yet.
    is_withdrawn = now.command_failure_code not in {"", "SESSION_ENDED"}
    # Its number may have moved since it was taken, after a restore of the database.
    awaited = now.command_input_seq or turn.input_seq
    return now.is_waiting and (now.terminal_input_seq >= awaited or is_withdrawn)


def _conclude(turn: Turn, now: Snapshot, state: TerminalState) -> InteractiveOutputResult:
    end = now.stdout_next_offset
    start = min(turn.from_offset, end)
    shown = view_turn(
        turn.session_id,
        start,
        end,
        turn.max_output_bytes,
        is_final=state != "running",
        mask=mask_of(turn.session_id, now.sealed_secrets),
    )
    shown_to = shown.next_offset
    if turn.view == "screen":
        shown = view_screen(turn.session_id, end, now.rows, now.cols)
    result = terminal_result(
        InteractiveOutputResult,
        turn.session_id,
        now,
        state,
        start=start,
        shown=shown,
        is_unentered=turn.is_unentered,
    )
    # Last, so that output of which no answer could be made is shown by a later turn.
    if turn.is_showing and shown_to > now.shown_offset:
        execute(_SHOWN, [shown_to, as_parameter(turn.session_id), shown_to])
    if turn.command_seq is not None and not (now.is_command_settled or now.is_final):
        is_size = turn.until == "settled"
        # A program that waits anew has taken the input, whatever the host has said of it yet.
        unsettled = unsettled_hint() if is_size else untyped_hint() if state == "running" else ""
        return result.model_copy(update={"hint": sentences(unsettled, result.hint)})
    if not now.command_failure_code:
        return result
    refused = refused_hint(now.command_failure_code, now.command_failure_message)
    return result.model_copy(update={"hint": sentences(result.hint, refused)})


R = TypeVar("R", bound=TerminalResult)


def terminal_result(
    model: type[R],
    session_id: UUID,
    now: Snapshot,
    state: TerminalState,
    *,
    start: int,
    shown: StreamText,
    is_unentered: bool = False,
) -> R:
    """The session's terminal at this moment, as ``model`` declares it.

    ``is_unentered``: the caller has typed text without Enter.
    """
    prompt = prompt_of(session_id, now) if state == "awaiting_input" else None
    hint = hint_for(
        state,
        prompt=prompt,
        end_reason=now.ended_as,
        exit_code=now.exit_code,
        signal=now.signal or None,
        is_online=now.is_controller_online,
        kind=now.kind,
        survivors=now.survivors,
        is_confirmed=now.is_confirmed,
        is_unentered=is_unentered,
    )
    takeover = (
        ""
        if now.is_final
        else takeover_hint(now.taken_over_by, now.handback_note, now.lifetime_clock, clock.now())
    )
    omitted = (
        ""
        if shown.omitted_offset is None
        else omitted_hint(shown.omitted_offset, shown.omitted_bytes)
    )
    # Of these each model takes the fields that it declares.
    of_some_models = {
        "duration_ms": now.age_ms,
        "output_base64": shown.output_base64,
        "cursor": shown.cursor,
    }
    return model(
        session_id=session_id,
        state=state,
        output=shown.text,
        offset=start,
        next_offset=shown.next_offset,
        total_bytes=now.stdout_next_offset,
        truncated=shown.omitted_bytes > 0,
        omitted_bytes=shown.omitted_bytes,
        omitted_offset=shown.omitted_offset,
        gaps=shown.gaps,
        prompt=prompt,
        activity=now.terminal_detail if state == "running" else "",
        is_alive=not now.is_final,
        exit_code=now.exit_code,
        signal=now.signal or None,
        end_reason=now.ended_as,
        hint=sentences(hint, takeover, omitted),
        survivors=now.survivors,
        operator=now.taken_over_by or None,
        expires_at=now.expires_at,
        **of_some_models,
    )
