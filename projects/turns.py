"""The wait of a turn: look, wait for the doorbell, look again, and return the moment the turn is over.

A turn is over when the program waits for input at the newest offset and after the caller's own input, when it ended, when
``wait_for`` matched new output, when the output budget is full, or when the wait ran out. Waiting holds neither a thread nor a
connection. The look that finds the turn over also notes what the caller was shown, in the same hop: should the answer get lost, the
output is shown again, never skipped.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

import re2
from django.db import connection

from controller_client.protocol.session_state import SessionState
from projects.dispatch import Doorbell, as_parameter
from projects.errors import InputRefused, InvalidPattern, StartFailed
from projects.hints import hint_for, omitted_hint, refused_hint, takeover_hint
from projects.output_view import OutputView, read_range, view_screen, view_turn
from projects.results import InteractiveOutputResult, Prompt, TerminalState, View
from projects.selectors import Snapshot, session_snapshot
from projects.text_view import TextView
from projects.watching import watch

DEFAULT_WAIT_SECONDS: Final = 10.0
DEFAULT_OUTPUT_BYTES: Final = 32 * 1024
MAX_OUTPUT_BYTES: Final = 256 * 1024
MIN_OUTPUT_BYTES: Final = 256
MAX_PATTERN_CHARS: Final = 1000
_PATTERN_MEMORY_BYTES: Final = 1 << 20
_SHOWN: Final = "UPDATE projects_commandsession SET shown_offset = %s WHERE id = %s AND shown_offset < %s"

_NEVER_BEGAN: Final = {SessionState.START_FAILED: "start_failed", SessionState.EXPIRED: "expired"}


@dataclass(frozen=True, slots=True)
class Turn:
    """One call's wait on a session, from ``from_offset`` on.

    ``input_seq``: the input whose answer is awaited; 0 for none. ``is_poll``: an earlier call typed it, so this one does not fail with it.
    ``until`` narrows what ends the wait: only the session's end, or only the host's answer to outbox command ``command_seq``. Unless
    ``is_showing``, the result is not counted as shown to anybody.
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


@dataclass(slots=True)
class Pattern:
    """``wait_for`` and how much of the turn's output it has seen. One turn's own."""

    compiled: Any
    seen_offset: int = -1
    text: TextView = field(default_factory=TextView)

    def matches(self, session_id: UUID, start: int, end: int) -> bool:
        """Whether the text of ``[start, end)`` matches; reads only what is new."""
        position = max(start, self.seen_offset)
        data, _ = read_range(session_id, position, end)
        self.text.feed(data)
        self.seen_offset = end
        return self.compiled.search(self.text.text) is not None


def compile_pattern(wait_for: str | None) -> Pattern | None:
    """Linear-time regular expression. Raises InvalidPattern."""
    if wait_for is None or wait_for == "":
        return None
    if len(wait_for) > MAX_PATTERN_CHARS:
        raise InvalidPattern(f"longer than {MAX_PATTERN_CHARS} characters")
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        return Pattern(re2.compile(wait_for, options))
    except (re2.error, UnicodeEncodeError, ValueError):
        # The library's text quotes the pattern; a caller knows what it sent.
        raise InvalidPattern("RE2 does not accept it") from None


async def take_turn(turn: Turn, bell: Doorbell, *, look_first: bool) -> InteractiveOutputResult:
    """Waits until the turn is over. ``look_first``: it may be over already (a poll, a retry); otherwise it was only just begun."""
    is_long = turn.view == "screen" or turn.pattern is not None or turn.max_output_bytes > DEFAULT_OUTPUT_BYTES
    return await watch(bell, partial(look, turn), turn.wait_seconds, look_first=look_first, is_long=is_long)


def look(turn: Turn, is_last: bool) -> InteractiveOutputResult | None:
    """The result if the turn is over (or ``is_last``), else None. Runs in a database thread."""
    now = session_snapshot(turn.project_id, turn.session_id, input_seq=turn.input_seq, command_seq=turn.command_seq)
    _check_refusals(turn, now)
    state = _state_after(turn, now)
    if state is None:
        if not is_last:
            return None
        state = "awaiting_input" if _is_answered(turn, now) else "running"
    return _conclude(turn, now, state)


def _check_refusals(turn: Turn, now: Snapshot) -> None:
    if now.command_failure_code and not turn.is_poll:
        raise InputRefused(now.command_failure_code, now.command_failure_message or "the host refused it")
    if turn.is_start and now.state in _NEVER_BEGAN:
        raise StartFailed(now.failure_code or now.state, now.failure_message or "the host did not start the program")


def _state_after(turn: Turn, now: Snapshot) -> TerminalState | None:
    """What the turn ended with; None while it is not over."""
    if now.is_final:
        return "exited"
    if turn.until != "turn":
        is_over = turn.until == "settled" and now.command_settled
    elif _is_answered(turn, now):
        # Who only waits, waits for the end of a takeover, too: until then the question is not theirs.
        return None if turn.is_poll and now.taken_over_by else "awaiting_input"
    else:
        is_over = _has_enough(turn, now)
    if not is_over:
        return None
    return "awaiting_input" if _is_answered(turn, now) else "running"


def _has_enough(turn: Turn, now: Snapshot) -> bool:
    """The budget is full, or the pattern matches what is new."""
    size = now.stdout_next_offset - turn.from_offset
    if size >= turn.max_output_bytes:
        return True
    return turn.pattern is not None and size > 0 and turn.pattern.matches(turn.session_id, turn.from_offset, now.stdout_next_offset)


def _is_answered(turn: Turn, now: Snapshot) -> bool:
    # A refused input is never answered: what the terminal waited for before, it still waits for, unless its end is only not known here yet.
    is_withdrawn = now.command_failure_code not in {"", "SESSION_ENDED"}
    return now.is_waiting and (now.terminal_input_seq >= turn.input_seq or is_withdrawn)


def _conclude(turn: Turn, now: Snapshot, state: TerminalState) -> InteractiveOutputResult:
    end = now.stdout_next_offset
    start = min(turn.from_offset, end)
    shown = view_turn(turn.session_id, start, end, turn.max_output_bytes, is_final=state != "running")
    if turn.is_showing and shown.next_offset > now.shown_offset:
        with connection.cursor() as cursor:
            cursor.execute(_SHOWN, [shown.next_offset, as_parameter(turn.session_id), shown.next_offset])
    if turn.view == "screen":
        shown = view_screen(turn.session_id, end, now.rows, now.cols)
    result = terminal_result(turn.session_id, now, state, start, shown)
    if not now.command_failure_code:
        return result
    return replace(result, hint=result.hint + refused_hint(now.command_failure_code, now.command_failure_message))


def terminal_result(session_id: UUID, now: Snapshot, state: TerminalState, start: int, shown: OutputView) -> InteractiveOutputResult:
    """What a caller is told about the session at this moment."""
    prompt = None
    if state == "awaiting_input":
        prompt = Prompt(kind=now.terminal_kind, text=now.terminal_prompt, evidence=now.terminal_evidence)  # type: ignore[arg-type]  # written from the protocol's own literals
    end_reason = end_reason_of(now) if state == "exited" else None
    hint = hint_for(
        state,
        prompt=prompt,
        end_reason=end_reason,
        exit_code=now.exit_code,
        signal=now.signal or None,
        is_online=now.is_controller_online,
        kind=now.kind,
    )
    if not now.is_final:
        hint += takeover_hint(now.taken_over_by, now.handback_note)
    if shown.omitted_offset is not None:
        hint += omitted_hint(shown.omitted_offset, shown.omitted_bytes)
    return InteractiveOutputResult(
        session_id=session_id,
        state=state,
        output=shown.output,
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
        end_reason=end_reason,
        duration_ms=now.duration_ms,
        hint=hint,
        output_base64=shown.output_base64,
        cursor=shown.cursor,
        operator=now.taken_over_by or None,
    )


def end_reason_of(now: Snapshot) -> str:
    """Why it ended: exited, terminated, timed_out, lost, start_failed or expired."""
    return now.end_reason or _NEVER_BEGAN.get(SessionState(now.state), now.state.lower())
