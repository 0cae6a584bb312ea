"""What workers write of runs: each function is one short transaction, made for a database thread.

Whoever works on a run holds its lease, and every write says so: under a lost lease nothing is written. Expiry is judged by the clock of
whoever looks; workers on several machines are expected to agree on the time to a fraction of a lease.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from agent.conversation import Answer, Call
from agent.models import AgentApproval, AgentRun, AgentStep, Approvals, ProjectApprovals
from projects.encryption import open_sealed, seal

_STATE = AgentRun.State
HIDDEN: Final = "(hidden input)"
_TYPED: Final = frozenset({"input_text", "keys", "input"})


class LeaseLost(Exception):
    """Another worker has the run now, or it has ended: whatever was about to be written is not."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What the run looks like from outside at a beat of its worker."""

    stop_requested_by: str
    is_out_of_time: bool


def run_claim(seconds: float, *, excluded: Collection[UUID] = (), only: UUID | None = None) -> tuple[UUID, UUID] | None:
    """Takes up the oldest run nobody works on: (run, lease). None if there is none. Safe against any number of others.

    ``only`` that run is looked at; the only way to get one that is reserved.
    """
    now = timezone.now()
    free = Q(state=_STATE.QUEUED) | Q(state=_STATE.RUNNING, lease_expires_at__lt=now)
    free &= Q(is_reserved=False) if only is None else Q(id=only)
    waiting = AgentRun.objects.filter(free).exclude(id__in=list(excluded))
    for run_id, state in list(waiting.order_by("created_at").values_list("id", "state")[:8]):
        lease = uuid4()
        changes = {"state": _STATE.RUNNING, "lease": lease, "lease_expires_at": now + timedelta(seconds=seconds)}
        if state == _STATE.RUNNING:
            changes["interruptions"] = F("interruptions") + 1
        if AgentRun.objects.filter(free, id=run_id).update(**changes):
            AgentRun.objects.filter(id=run_id, started_at__isnull=True).update(started_at=now)
            return run_id, lease
    return None


def run_beat(run_id: UUID, lease: UUID, seconds: float, worked_seconds: float) -> Pulse:
    """Extends the lease. Raises LeaseLost."""
    with transaction.atomic():
        _write(
            run_id, lease, lease_expires_at=timezone.now() + timedelta(seconds=seconds), worked_seconds=F("worked_seconds") + worked_seconds
        )
        run = AgentRun.objects.only("stop_requested_by", "worked_seconds", "max_run_seconds").get(id=run_id)
        return Pulse(run.stop_requested_by, run.worked_seconds >= run.max_run_seconds)


def run_drafted(run_id: UUID, lease: UUID, draft: str) -> None:
    """What the model is saying. Raises LeaseLost."""
    _write(run_id, lease, draft=draft)


def run_noticed(run_id: UUID, lease: UUID, notice: str) -> None:
    """What its worker waits for. Raises LeaseLost."""
    _write(run_id, lease, draft="", notice=notice)


def run_released(run_id: UUID, lease: UUID) -> None:
    """Given back as it is, for the next worker at once. Nothing, under a lost lease."""
    AgentRun.objects.filter(id=run_id, lease=lease, state=_STATE.RUNNING).update(
        state=_STATE.QUEUED, lease=None, lease_expires_at=None, draft="", notice=""
    )


@transaction.atomic
def run_parked(run_id: UUID, lease: UUID) -> None:
    """Waits for answers without a worker; goes on at once if they came meanwhile. Raises LeaseLost."""
    _write(run_id, lease, state=_STATE.WAITING, lease=None, lease_expires_at=None, draft="")
    if not AgentApproval.objects.filter(run_id=run_id, answer=AgentApproval.Answer.PENDING).exists():
        AgentRun.objects.filter(id=run_id).update(state=_STATE.QUEUED)


@transaction.atomic
def run_ended(run_id: UUID, lease: UUID, state: str, *, stop_reason: str, report: str, is_successful: bool | None) -> None:
    """The run is over; if by its own newest answer, that step is complete with it. Raises LeaseLost."""
    _write(
        run_id,
        lease,
        state=state,
        stop_reason=stop_reason,
        report=report,
        is_successful=is_successful,
        lease=None,
        lease_expires_at=None,
        draft="",
        notice="",
        ended_at=timezone.now(),
    )
    step = AgentStep.objects.filter(run_id=run_id, is_complete=False).last() if state == _STATE.FINISHED else None
    if step is not None:
        left = len(step.calls) - len(step.results)
        step.results = [*step.results, *({"body": {"ended": True}, "is_error": False, "seconds": 0.0} for _ in range(left))]
        step.is_complete, step.sealed, step.completed_at = True, None, timezone.now()
        step.save(update_fields=["results", "is_complete", "sealed", "completed_at"])


def run_loaded(run_id: UUID) -> tuple[AgentRun, list[AgentStep]]:
    """The run and its steps, now."""
    run = AgentRun.objects.select_related("project").get(id=run_id)
    return run, list(run.steps.order_by("number"))


@transaction.atomic
def step_answered(
    run_id: UUID, lease: UUID, *, number: int, said_before: Sequence[str], is_nudge: bool, answer: Answer, hidden: Collection[int]
) -> AgentStep:
    """The model's answer, before any of its calls is made. Raises LeaseLost.

    ``is_nudge``: it was told that it does not get on. ``hidden``: calls whose input nobody is to read.
    """
    nudged = {"nudged_at_step": number - 1} if is_nudge else {}
    _write(
        run_id,
        lease,
        **nudged,
        draft="",
        notice="",
        said_next=[],
        input_tokens=F("input_tokens") + answer.input_tokens,
        output_tokens=F("output_tokens") + answer.output_tokens,
        cost_cents=F("cost_cents") + answer.cost_cents,
    )
    calls = [_as_stored(call, is_hidden=index in hidden) for index, call in enumerate(answer.calls)]
    return AgentStep.objects.create(
        run_id=run_id,
        number=number,
        said_before=list(said_before),
        text=answer.text,
        calls=calls,
        sealed=seal(json.dumps([_as_stored(call, is_hidden=False) for call in answer.calls]).encode()) if hidden else None,
        native=None if hidden else answer.native,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_cents=answer.cost_cents,
    )


@transaction.atomic
def step_result(run_id: UUID, lease: UUID, step: AgentStep, result: Mapping[str, Any], *, is_hidden: bool) -> None:
    """The result of the step's next call; ``is_hidden``: nobody is to read what the call typed. Raises LeaseLost."""
    _write(run_id, lease, draft="")
    if is_hidden:
        index = len(step.results)
        step.calls[index] = _redacted(step.calls[index])
        step.native = None
    step.results = [*step.results, dict(result)]
    step.save(update_fields=["results", "calls", "native"])


@transaction.atomic
def step_completed(run_id: UUID, lease: UUID, step: AgentStep) -> None:
    """All its calls have results: what was sealed is forgotten. Raises LeaseLost."""
    _write(run_id, lease, draft="", interruptions=0)
    step.is_complete, step.sealed, step.completed_at = True, None, timezone.now()
    step.save(update_fields=["is_complete", "sealed", "completed_at"])


def calls_of(step: AgentStep) -> tuple[Call, ...]:
    """As they came, if the step is not complete yet; with hidden input left out after that."""
    stored = json.loads(open_sealed(step.sealed)) if step.sealed is not None else step.calls
    return tuple(Call(call["id"], call["name"], call["arguments"]) for call in stored)


@transaction.atomic
def approval_of(run_id: UUID, lease: UUID, *, step: AgentStep, index: int, risk: str, risk_reason: str) -> AgentApproval:
    """The request of this call, made if it is new. Raises LeaseLost."""
    _write(run_id, lease, draft="")
    call = step.calls[index]
    wanted = {"tool": call["name"], "arguments": call["arguments"] or {}, "risk": risk, "risk_reason": risk_reason}
    approval, _ = AgentApproval.objects.get_or_create(run_id=run_id, step_number=step.number, call_index=index, defaults=wanted)
    return approval


def approvals_of_project(project_id: UUID, default: str) -> str:
    """The project's policy."""
    own = ProjectApprovals.objects.filter(project_id=project_id).values_list("approvals", flat=True).first()
    return own or Approvals(default).value


def approved_steps(run_id: UUID) -> set[tuple[int, int]]:
    """(step, call) of everything a person said yes to."""
    answered = AgentApproval.objects.filter(run_id=run_id, answer=AgentApproval.Answer.APPROVED)
    return set(answered.values_list("step_number", "call_index"))


def _as_stored(call: Call, *, is_hidden: bool) -> dict[str, Any]:
    stored = {"id": call.id, "name": call.name, "arguments": None if call.arguments is None else dict(call.arguments)}
    return _redacted(stored) if is_hidden else stored


def _redacted(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = {name: HIDDEN if name in _TYPED else value for name, value in (call["arguments"] or {}).items()}
    return {**call, "arguments": arguments}


def _write(run_id: UUID, held_under: UUID, /, **changes: Any) -> None:
    """First statement of every transaction: it takes the row's lock, or says that the lease is another's."""
    if not AgentRun.objects.filter(id=run_id, lease=held_under, state=_STATE.RUNNING).update(**changes):
        raise LeaseLost
