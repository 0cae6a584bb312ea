"""Signs that a run should end: a budget that is used up, or a model that makes no progress.

Pure: events in, a verdict out.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

from agent.models import AgentRun

Stuck = Literal["repeating", "alternating", "no_progress", "silent_answers"]

REPEATS: Final = 4
"""After this many equal calls with equal results a run is stuck."""
WAITS: Final = 20
"""After this many waits without anything new a run is stuck."""
FRUITLESS: Final = 12
"""After this many calls in a row without a new result a run is stuck."""
CUTS: Final = 3
"""After this many answers in a row that were cut off a run is over."""
CUT: Final = "Your answer was cut off by"
FAILURES: Final = 8
"""After this many refused calls in a row a run is stuck."""

OUT_OF_TIME: Final = "max_run_seconds"

NUDGE: Final[Mapping[Stuck, str]] = {
    "repeating": "You have made the same call several times with the same result.",
    "alternating": "You alternate between the same two calls, with the same results.",
    "no_progress": "Your last calls have shown nothing new.",
    "silent_answers": "Your last answers contained neither text nor a call.",
}
NUDGE_END: Final = (
    " Read the results and do something else. If the task cannot be done, call finish_task with "
    "success false and say why. Without progress the run is ended."
)
# These arguments and results differ from call to call without a meaning.
_OF_CALLS: Final = frozenset(
    {"request_id", "requestId", "wait_seconds", "timeout", "max_output_bytes"}
)
_OF_RESULTS: Final = frozenset(
    (
        "session_id",
        "sessionId",
        "token",
        "pid",
        "hint",
        "started_at",
        "created_at",
        "offset",
        "next_offset",
        "total_bytes",
        "duration_ms",
        "execution_time",
    )
)


@dataclass(frozen=True, slots=True)
class Happening:
    """A call and its result, reduced to what shows progress."""

    call: str
    result: str
    is_error: bool
    is_wait: bool


def exhausted(run: AgentRun, steps: int) -> str | None:
    """The stop reason of a limit that the run has reached after ``steps`` answers; None if none.

    Time comes before the others. 0 cents is no limit.
    """
    if run.worked_seconds >= run.max_run_seconds:
        return OUT_OF_TIME
    if steps >= run.max_steps:
        return "max_steps"
    if run.input_tokens + run.output_tokens >= run.max_tokens:
        return "max_tokens"
    return "max_cost" if run.max_cost_cents and run.cost_cents >= run.max_cost_cents else None


def told_of_cut(cut_by: str) -> str:
    """The message to a model about its answer that was cut off."""
    return f"{CUT} {cut_by}, so none of its calls was made. Answer again, with less at once."


def is_cut_again(told: Sequence[Sequence[str]]) -> bool:
    """Returns True if the newest answers were all cut off.

    ``told`` are the messages to the model after each answer.
    """
    return len(told) >= CUTS and all(
        any(text.startswith(CUT) for text in said) for said in told[-CUTS:]
    )


def happening(call: Mapping[str, Any], result: Mapping[str, Any]) -> Happening:
    """A call of a step and its result, in the form in which they are compared with others.

    Arguments and results that differ in every call are left out.
    """
    name, given, body = call["name"], call["arguments"] or {}, result["body"]
    return Happening(
        _print([name, _without(given, _OF_CALLS)]),
        _print(_without(body, _OF_RESULTS)),
        result["is_error"],
        _is_wait(name, given, body),
    )


def stuck(happenings: Sequence[Happening], *, silent_answers: int = 0) -> Stuck | None:
    """The reason why the newest happenings show no progress; None if they do."""
    if silent_answers >= 3:
        return "silent_answers"
    acts = [one for one in happenings if not one.is_wait]
    waits = happenings[-WAITS:]
    if len(waits) == WAITS and all(one.is_wait for one in waits) and len(set(waits)) == 1:
        return "repeating"
    # The newest call has to be a part of the pattern: a run that left it is not stuck.
    if not happenings or happenings[-1].is_wait:
        return None
    if len(acts) >= REPEATS and len(set(acts[-REPEATS:])) == 1:
        return "repeating"
    pairs = 2 * REPEATS
    if (
        len(acts) >= pairs
        and len(set(acts[-pairs::2])) == 1
        and len(set(acts[-pairs + 1 :: 2])) == 1
    ):
        return "alternating"
    return "no_progress" if _is_fruitless(acts) else None


def _is_fruitless(acts: Sequence[Happening]) -> bool:
    if len(acts) >= FAILURES and all(one.is_error for one in acts[-FAILURES:]):
        return True
    earlier, newest = acts[:-FRUITLESS], acts[-FRUITLESS:]
    if not earlier or len(newest) < FRUITLESS:
        return False
    seen = {one.result for one in earlier}
    return all(one.result in seen for one in newest)


def _is_wait(name: str, arguments: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Returns True for a call that typed nothing, while its program still runs."""
    if name == "send_command_input":
        types = any(arguments.get(part) for part in ("input_text", "keys", "secret", "terminate"))
        # A run also waits for a session that a person has taken over.
        return not types and (body.get("state") == "running" or bool(body.get("operator")))
    return name in {"read_output", "query_command_status"} and (
        body.get("isActive") is True or body.get("status") == "running"
    )


def _without(value: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in names}


def _print(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
