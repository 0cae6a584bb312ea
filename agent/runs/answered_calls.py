"""The calls of a model's answer: as they came while they are made, and as their row shows them."""

import json
from collections.abc import Collection
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple

from agent.llm.conversation import Answer, Call
from agent.models import AgentStep
from agent.runs.stored_text import is_storable, storable
from projects.sessions.approvals.asking import HIDDEN, TYPED
from projects.storage.sealing import open_sealed, seal


class _Exact(NamedTuple):
    calls: list[dict[str, Any]]
    native: Any = None


def row_of(answer: Answer, hidden: Collection[int]) -> dict[str, Any]:
    """Returns the columns ``calls``, ``sealed`` and ``native`` of a new answer.

    Args:
        answer: what the model answered. Of one that was cut off no call is made.
        hidden: the indexes of calls whose input nobody may read, or not yet.

    """
    calls = () if answer.cut_by else answer.calls
    exact = [asdict(call) for call in calls]
    # Its endpoint takes it back as it came or not at all.
    native = answer.native if not answer.cut_by and is_storable(answer.native) else None
    # The calls are made as they came, whatever the row may hold of them.
    is_sealed = bool(hidden) or not is_storable(exact)
    # Without reasoning it is the list that an older server knows.
    kept = _Exact(exact, native)._asdict() if hidden and native is not None else exact
    return {
        "calls": [shown(call, is_hidden=index in hidden) for index, call in enumerate(calls)],
        "sealed": seal(json.dumps(kept).encode()) if is_sealed else None,
        "native": None if hidden else native,
    }


def calls_of(step: AgentStep) -> tuple[Call, ...]:
    """The calls of a step: as they came while it is incomplete, then without hidden input."""
    return tuple(Call(**call) for call in _exact(step).calls)


def complete(step: AgentStep, now: datetime) -> None:
    """Completes a step, and forgets what was sealed but for what nobody had to hide in the end."""
    exact = _exact(step)
    if step.native is None and step.calls == exact.calls:
        step.native = exact.native
    step.is_complete, step.sealed, step.completed_at = True, None, now
    step.save(update_fields=["results", "native", "is_complete", "sealed", "completed_at"])


def shown(call: Call, *, is_hidden: bool) -> dict[str, Any]:
    """A call as its row has it for people."""
    if not is_hidden:
        return storable(asdict(call))
    arguments = {
        name: HIDDEN if name in TYPED else value for name, value in (call.arguments or {}).items()
    }
    return storable({**asdict(call), "arguments": arguments})


def _exact(step: AgentStep) -> _Exact:
    if step.sealed is None:
        return _Exact(step.calls)
    stored = json.loads(open_sealed(step.sealed))
    # An older server sealed only the calls. Its update may come between two of them.
    return _Exact(stored) if isinstance(stored, list) else _Exact(**stored)
