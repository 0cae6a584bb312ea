"""When a run has had enough: budgets, and signs that it does not get on. Pure: what happened in, a verdict out."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Literal

Stuck = Literal["repeating", "alternating", "no_progress", "silent_answers"]

REPEATS: Final = 4
"""The same call with the same result so often: stuck."""
WAITS: Final = 20
"""A call that only waits on may find nothing new so often."""
FRUITLESS: Final = 12
"""So many calls in a row that showed nothing which was not seen before: stuck."""
FAILURES: Final = 8
"""So many calls in a row that were refused: stuck."""

OUT_OF_TIME: Final = "max_run_seconds"

NUDGE: Final[Mapping[Stuck, str]] = {
    "repeating": "You have made the same call several times with the same result.",
    "alternating": "You go back and forth between the same two calls, with the same results.",
    "no_progress": "Your last calls have shown nothing new.",
    "silent_answers": "Your last answers held neither text nor a call.",
}
NUDGE_END: Final = (
    " Look at what the results say and do something else; if the task cannot be done, call finish_task with success false and say why."
    " If it goes on like this the run is ended."
)
# What differs from one call to the next without meaning anything.
_OF_CALLS: Final = frozenset({"request_id", "requestId", "wait_seconds", "timeout", "max_output_bytes"})
_OF_RESULTS: Final = frozenset(
    (
        *("session_id", "sessionId", "token", "pid", "hint", "started_at", "created_at"),
        *("offset", "next_offset", "total_bytes", "duration_ms", "execution_time"),
    )
)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Limits of a run; 0 cents: no limit."""

    max_steps: int
    max_tokens: int
    max_cost_cents: int
    max_run_seconds: float


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run has used so far."""

    steps: int
    tokens: int
    cost_cents: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Happening:
    """A call and its result, as far as they tell whether a run gets on."""

    call: str
    result: str
    is_error: bool
    is_wait: bool


def exhausted(budget: Budget, spent: Spent) -> str | None:
    """The stop reason of a limit that is reached; time before the others."""
    if spent.seconds >= budget.max_run_seconds:
        return OUT_OF_TIME
    if spent.steps >= budget.max_steps:
        return "max_steps"
    if spent.tokens >= budget.max_tokens:
        return "max_tokens"
    return "max_cost" if budget.max_cost_cents and spent.cost_cents >= budget.max_cost_cents else None


def happening(name: str, arguments: Mapping[str, Any] | None, body: Mapping[str, Any], *, is_error: bool) -> Happening:
    """A call as it is compared with others: without what differs in every one of them."""
    given = arguments or {}
    return Happening(_print([name, _without(given, _OF_CALLS)]), _print(_without(body, _OF_RESULTS)), is_error, _is_wait(name, given, body))


def stuck(happenings: Sequence[Happening], *, silent_answers: int = 0) -> Stuck | None:
    """What is wrong with the newest of them, if anything."""
    if silent_answers >= 3:
        return "silent_answers"
    acts = [one for one in happenings if not one.is_wait]
    waits = happenings[-WAITS:]
    if len(waits) == WAITS and all(one.is_wait for one in waits) and len(set(waits)) == 1:
        return "repeating"
    # The newest has to be part of it: what was stuck and went on is not.
    if not happenings or happenings[-1].is_wait:
        return None
    if len(acts) >= REPEATS and len(set(acts[-REPEATS:])) == 1:
        return "repeating"
    pairs = 2 * REPEATS
    if len(acts) >= pairs and len(set(acts[-pairs::2])) == 1 and len(set(acts[-pairs + 1 :: 2])) == 1:
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
    """It typed nothing, and what it waited for still runs."""
    if name == "send_command_input":
        types = any(arguments.get(part) for part in ("input_text", "keys", "secret", "terminate"))
        # A session that a person has taken over is waited for, too.
        return not types and (body.get("state") == "running" or bool(body.get("operator")))
    return name in {"read_output", "query_command_status"} and (body.get("isActive") is True or body.get("status") == "running")


def _without(value: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in names}


def _print(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
