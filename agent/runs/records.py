"""The writes of workers to the rows of runs. Each function is one short transaction.

A worker holds the lease of its run, and every write checks it: under a lost lease nothing is
written. A lease expires by the clock of whoever looks. Workers on several machines have to agree on
the time to a fraction of a lease.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Q, QuerySet

from agent.llm.conversation import Answer
from agent.models import AgentRun, AgentStep
from agent.runs import answered_calls, judgement, unseen
from agent.runs.stored_text import storable
from projects.attention.events import Cause, attention_raise
from projects.models import Approval, AttentionKind, Project
from projects.models.accounts import ApprovalPolicy, stricter
from projects.sessions import lifetimes
from projects.sessions.approvals.answering import approvals_withdraw
from projects.sessions.approvals.asking import Asked, HeldCall, approval_ask
from projects.storage import clock
from projects.storage.rows import fetch_row

_STATE = AgentRun.State
# Every server asks once a second. Without a run that is not over it builds no further statement.
_OPEN: Final = "SELECT EXISTS (SELECT 1 FROM agent_agentrun WHERE state IN (%s, %s))"


class _Sign(NamedTuple):
    is_there: bool = False


class LeaseLost(Exception):
    """Another worker has the run now, or it has ended. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """Reasons for a worker to end its run, read when it renews its lease."""

    stop_requested_by: str
    is_out_of_time: bool


def run_claim(
    seconds: float, *, excluded: Collection[UUID] = (), only: UUID | None = None
) -> tuple[UUID, UUID] | None:
    """Takes up the oldest run without a worker, and returns (run, lease); None if there is none.

    Any number of workers may call it at once. ``only`` names the run to take up: that is the only
    way to get a reserved run, unless it was asked to stop and only has to be ended.
    """
    sign = fetch_row(_Sign, _OPEN, [_STATE.QUEUED.value, _STATE.RUNNING.value]) or _Sign()
    if not sign.is_there:
        return None
    now = clock.now()
    free = Q(state=_STATE.QUEUED) | Q(
        state=_STATE.RUNNING, lease_expires_at__lt=clock.lease_now(seconds)
    )
    free |= Q(state=_STATE.RUNNING) & clock.is_of_another_time("lease_expires_at", seconds)
    is_open = Q(is_reserved=False) | ~Q(stop_requested_by="")
    free &= is_open if only is None else Q(id=only)
    waiting = AgentRun.objects.filter(free).exclude(id__in=list(excluded))
    for run_id, state in list(waiting.order_by("created_at").values_list("id", "state")[:8]):
        lease = uuid4()
        changes = {
            "state": _STATE.RUNNING,
            "lease": lease,
            "lease_expires_at": now + timedelta(seconds=seconds),
        }
        if state == _STATE.RUNNING:
            changes["interruptions"] = F("interruptions") + 1
        if AgentRun.objects.filter(free, id=run_id).update(**changes):
            AgentRun.objects.filter(id=run_id, started_at__isnull=True).update(started_at=now)
            return run_id, lease
    return None


def run_beat(run_id: UUID, lease: UUID, seconds: float, worked_seconds: float) -> Pulse:
    """Renews the lease. Raises LeaseLost."""
    with transaction.atomic():
        _write(
            run_id,
            lease,
            lease_expires_at=clock.now() + timedelta(seconds=seconds),
            worked_seconds=F("worked_seconds") + worked_seconds,
        )
        run = AgentRun.objects.only("stop_requested_by", "worked_seconds", "max_run_seconds").get(
            id=run_id
        )
        return Pulse(run.stop_requested_by, run.worked_seconds >= run.max_run_seconds)


def run_worked(run_id: UUID, worked_seconds: float) -> None:
    """Adds time that a worker spent on the run, whoever has it now."""
    AgentRun.objects.filter(id=run_id).update(worked_seconds=F("worked_seconds") + worked_seconds)


def run_drafted(run_id: UUID, lease: UUID, draft: str) -> None:
    """Stores the model's text so far. Raises LeaseLost."""
    _write(run_id, lease, draft=draft)


def run_noticed(run_id: UUID, lease: UUID, notice: str) -> None:
    """Stores a sentence about what the worker waits for. Raises LeaseLost."""
    _write(run_id, lease, draft="", notice=notice)


def run_released(run_id: UUID, lease: UUID) -> None:
    """Gives the run back for the next worker. Does nothing under a lost lease."""
    AgentRun.objects.filter(id=run_id, lease=lease, state=_STATE.RUNNING).update(
        state=_STATE.QUEUED, lease=None, lease_expires_at=None, draft="", notice=""
    )


@transaction.atomic
def run_parked(run_id: UUID, lease: UUID) -> bool:
    """Lets the run wait for answers without a worker. Returns False if it has to stop instead.

    The run is queued at once if the answers came meanwhile. The lifetimes of its sessions are
    paused while it waits. Raises LeaseLost.
    """
    _write(run_id, lease, draft="")
    run = AgentRun.objects.only("project_id", "stop_requested_by").get(id=run_id)
    if run.stop_requested_by:
        return False
    is_waiting = is_asking(run_id)
    state = _STATE.WAITING if is_waiting else _STATE.QUEUED
    _write(run_id, lease, state=state, lease=None, lease_expires_at=None)
    if is_waiting:
        lifetimes.hold_started_by(run.project_id, caller_label(run_id), asks_cause(run_id))
    return True


def caller_label(run_id: UUID) -> str:
    """The name of the run as a caller, in audit rows and of its sessions."""
    return f"agent:{run_id}"


def asks_cause(run_id: UUID) -> str:
    """The cause of paused lifetimes while the run waits for an approval."""
    return f"approval of {run_id}"


@transaction.atomic
def run_ended(
    run_id: UUID,
    lease: UUID,
    state: str,
    *,
    stop_reason: str,
    report: str,
    is_successful: bool | None,
) -> None:
    """Ends the run and withdraws its open questions. Raises LeaseLost.

    If its newest answer ends it, that step is completed as well.
    """
    now = clock.now()
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
        ended_at=now,
    )
    step = (
        AgentStep.objects.filter(run_id=run_id, is_complete=False).last()
        if state == _STATE.FINISHED
        else None
    )
    if step is not None:
        left = len(step.calls) - len(step.results)
        step.results = [
            *step.results,
            *({"body": {"ended": True}, "is_error": False, "seconds": 0.0} for _ in range(left)),
        ]
        answered_calls.complete(step, now)
    approvals_withdraw(Q(asked_by=caller_label(run_id)), actor=caller_label(run_id))
    run_end_tell(run_id, state, now)


def run_end_tell(run_id: UUID, state: str, ended_at: datetime) -> None:
    """Raises the event of this end, in the transaction that ends the run.

    A run that is resumed ends again, so the time is part of the cause.
    """
    project_id = AgentRun.objects.values_list("project_id", flat=True).get(id=run_id)
    ended = Cause(
        kind=AttentionKind.RUN_ENDED,
        key=f"run_ended:{run_id}:{ended_at.isoformat()}",
        project_id=project_id,
        path=f"/runs/{run_id}/",
        detail={"state": state},
    )
    attention_raise(ended)


def run_loaded(run_id: UUID) -> tuple[AgentRun, list[AgentStep]]:
    """The run and its steps as they are now."""
    run = AgentRun.objects.select_related("project").get(id=run_id)
    return run, list(run.steps.order_by("number"))


@transaction.atomic
def step_answered(
    run_id: UUID,
    lease: UUID,
    *,
    number: int,
    said_before: Sequence[str],
    is_nudge: bool,
    answer: Answer,
    hidden: Collection[int],
) -> AgentStep:
    """Stores the model's answer before any of its calls is made. Raises LeaseLost.

    Of an answer that was cut off the text is kept, and the model is told at its next one.

    Args:
        run_id: the run.
        lease: the lease of the worker.
        number: the number of the step.
        said_before: the messages to the model before this answer.
        is_nudge: one of them told the model that it makes no progress.
        answer: the model's answer.
        hidden: the indexes of calls whose input nobody may read, or not yet.

    """
    nudged = {"nudged_at_step": number - 1} if is_nudge else {}
    _write(
        run_id,
        lease,
        **nudged,
        draft="",
        notice="",
        said_next=[judgement.told_of_cut(answer.cut_by)] if answer.cut_by else [],
        input_tokens=F("input_tokens") + answer.input_tokens,
        output_tokens=F("output_tokens") + answer.output_tokens,
        cost_cents=F("cost_cents") + answer.cost_cents,
    )
    return AgentStep.objects.create(
        run_id=run_id,
        number=number,
        said_before=list(said_before),
        text=storable(answer.text),
        **answered_calls.row_of(answer, hidden),
        is_complete=bool(answer.cut_by),
        completed_at=clock.now() if answer.cut_by else None,
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_cents=answer.cost_cents,
    )


@transaction.atomic
def step_result(
    run_id: UUID,
    lease: UUID,
    steps: Sequence[AgentStep],
    index: int,
    result: Mapping[str, Any],
    *,
    is_hidden: bool,
) -> None:
    """Stores the result of call ``index`` of the newest step. Raises LeaseLost.

    ``is_hidden``: nobody may read what the call typed. The input of the next call was withheld, and
    from now on it may be read unless it answers a prompt for a secret. An attempt that is made
    again stores the same.
    """
    _write(run_id, lease, draft="")
    step = steps[-1]
    exact = answered_calls.calls_of(step)
    step.results = [*step.results[:index], storable(dict(result))]
    step.calls[index] = answered_calls.shown(exact[index], is_hidden=is_hidden)
    if is_hidden:
        step.native = None
    for following in range(index + 1, min(index + 2, len(exact))):
        call = exact[following]
        is_unseen = unseen.is_unseen(step.run.project_id, call, steps)
        step.calls[following] = answered_calls.shown(call, is_hidden=is_unseen)
    step.save(update_fields=["results", "calls", "native"])


@transaction.atomic
def step_completed(run_id: UUID, lease: UUID, step: AgentStep) -> None:
    """Completes a step whose calls all have results, and forgets its sealed calls.

    Raises LeaseLost.
    """
    _write(run_id, lease, draft="", interruptions=0)
    answered_calls.complete(step, clock.now())


@transaction.atomic
def approval_of(run_id: UUID, lease: UUID, question: HeldCall) -> Asked | None:
    """Asks a person about a call of the run, once; None if no one has to be asked.

    Raises LeaseLost, and what ``approval_ask`` raises.
    """
    _write(run_id, lease, draft="")
    return approval_ask(question)


def policy_of_runs(project: Project, default: str) -> str:
    """The policy that the runs of the project have at least. ``default`` is the setting's."""
    return stricter(project.approvals, project.run_approvals or ApprovalPolicy(default).value)


def approvals_of(run_id: UUID) -> QuerySet[Approval]:
    """The questions about calls of the run, in order."""
    return Approval.objects.filter(asked_by=caller_label(run_id)).order_by("id")


def is_asking(run_id: UUID) -> bool:
    """True if a question about a call of the run is open."""
    return approvals_of(run_id).filter(answer=Approval.Answer.PENDING).exists()


def approved_steps(run_id: UUID) -> set[tuple[int, int]]:
    """(step, call) of every call that a person approved."""
    answered = approvals_of(run_id).filter(answer=Approval.Answer.APPROVED)
    return {approval.place for approval in answered}


def run_locked(approval: Approval) -> None:
    """Locks the run of an approval that is about to end.

    Its worker may park it at this moment, and one has to see what the other did. Whoever ends a run
    locks first the run and then its questions, so an answer does the same.
    """
    if (name := approval.origin.get("run")) is not None:
        AgentRun.objects.select_for_update().filter(id=UUID(name)).first()


def run_answered(approval: Approval) -> None:
    """Queues the locked run of an approval that ended, if none of its questions is left open."""
    if (name := approval.origin.get("run")) is None:
        return
    run_id = UUID(name)
    if not is_asking(run_id):
        waiting = AgentRun.objects.filter(id=run_id, state=_STATE.WAITING)
        waiting.update(state=_STATE.QUEUED)
        lifetimes.release_all(asks_cause(run_id))


def _write(run_id: UUID, held_under: UUID, /, **changes: Any) -> None:
    """Changes the run as the first statement of a transaction, which locks its row.

    Raises LeaseLost.
    """
    stored = {
        name: storable(value) if isinstance(value, str) else value
        for name, value in changes.items()
    }
    held = AgentRun.objects.filter(id=run_id, lease=held_under, state=_STATE.RUNNING)
    if not held.update(**stored):
        raise LeaseLost
