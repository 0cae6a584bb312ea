"""What people and programs can have done with runs: submit, stop, answer what a run asks. Each is one short transaction.

Everything raised is a ControllerActionError. ``actor`` names who acts in audit rows.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from agent import records
from agent.conf import conf
from agent.models import AgentApproval, AgentRun, Approvals
from projects.audit_log import audit
from projects.errors import InvalidArgument, NotFound
from projects.models import Controller, Project

MOST_TASK_CHARS: Final = 20_000
_STATE = AgentRun.State
OVER: Final = (_STATE.FINISHED, _STATE.FAILED, _STATE.STOPPED)


@transaction.atomic
def run_submit(
    *,
    project: Project,
    task: str,
    actor: str,
    model: str = "",
    controllers: Sequence[str] = (),
    approvals: str = "",
    max_steps: int | None = None,
    max_tokens: int | None = None,
    max_cost_cents: int | None = None,
    max_run_seconds: float | None = None,
    output_bytes: int | None = None,
    lease: UUID | None = None,
) -> AgentRun:
    """A new run; any worker takes it up, unless it is made under a ``lease`` of the caller's. What is left out, settings say.

    ``approvals`` can only be stricter than the project's policy. Raises InvalidArgument.
    """
    policy = records.approvals_of_project(project.id, conf.approvals)
    wanted = approvals or policy
    problems = _problems(project, task, controllers, wanted, policy)
    if problems:
        raise InvalidArgument(problems)
    now = timezone.now()
    held: dict[str, Any] = {}
    if lease is not None:
        expires = now + timedelta(seconds=conf.lease_seconds)
        held = {"state": _STATE.RUNNING, "lease": lease, "lease_expires_at": expires, "started_at": now}
    run = AgentRun.objects.create(
        project=project,
        task=task,
        model=model or conf.model,
        controllers=list(controllers),
        approvals=wanted,
        submitted_by=actor[:128],
        max_steps=max_steps or conf.max_steps,
        max_tokens=max_tokens or conf.max_tokens,
        max_cost_cents=conf.max_cost_cents if max_cost_cents is None else max_cost_cents,
        max_run_seconds=max_run_seconds or conf.max_run_seconds,
        output_bytes=output_bytes or conf.output_bytes,
        **held,
    )
    _audit(run, actor, "agent_run.submit", {"run": str(run.id), "model": run.model, "approvals": run.approvals})
    return run


@transaction.atomic
def run_stop(*, run_id: UUID, actor: str) -> AgentRun:
    """Stops the run: at once if nobody works on it, otherwise within seconds. Its sessions go on until their lifetime ends them.

    Nothing, for a run that is over. Raises NotFound.
    """
    run = _locked(run_id)
    if run.state in OVER:
        return run
    over = {"state": _STATE.STOPPED, "stop_reason": "stopped", "report": f"stopped by {actor}", "ended_at": timezone.now()}
    changes: dict[str, Any] = {"stop_requested_by": actor[:128]} | ({} if run.state == _STATE.RUNNING else over)
    AgentRun.objects.filter(id=run_id).update(**changes)
    _audit(run, actor, "agent_run.stop", {"run": str(run.id)})
    run.refresh_from_db()
    return run


@transaction.atomic
def approval_answer(*, approval_id: int, is_approved: bool, actor: str, reason: str = "") -> bool:
    """Answers what a run asks, once: False if somebody did before. The run goes on when nothing is left to be answered. Raises NotFound."""
    pending = AgentApproval.Answer.PENDING
    answer = AgentApproval.Answer.APPROVED if is_approved else AgentApproval.Answer.DENIED
    approval = AgentApproval.objects.select_related("run").filter(id=approval_id).first()
    if approval is None:
        raise NotFound("there is no such request for approval")
    # Its worker may be giving it back at this moment: one of the two sees what the other did.
    _locked(approval.run_id)
    changes = {"answer": answer, "answered_by": actor[:128], "reason": reason[:1000], "answered_at": timezone.now()}
    if not AgentApproval.objects.filter(id=approval_id, answer=pending).update(**changes):
        return False
    if not AgentApproval.objects.filter(run_id=approval.run_id, answer=pending).exists():
        AgentRun.objects.filter(id=approval.run_id, state=_STATE.WAITING).update(state=_STATE.QUEUED)
    detail = {"run": str(approval.run_id), "tool": approval.tool, "risk": approval.risk, "answer": answer.value}
    _audit(approval.run, actor, "agent_run.answer", detail)
    return True


def _locked(run_id: UUID) -> AgentRun:
    """The run, with its row held until the transaction ends."""
    run = AgentRun.objects.select_for_update().filter(id=run_id).first()
    if run is None:
        raise NotFound("there is no such run")
    return run


def _problems(project: Project, task: str, controllers: Sequence[str], wanted: str, policy: str) -> list[str]:
    problems = []
    if not task.strip() or len(task) > MOST_TASK_CHARS:
        problems.append(f"task: must have 1 to {MOST_TASK_CHARS} characters")
    known = set(Controller.objects.filter(project=project, revoked_at__isnull=True).values_list("name", flat=True))
    problems += [f"controllers: there is no controller {name[:64]!r} in this project" for name in controllers if name not in known]
    strictness = list(Approvals.values)
    if wanted not in strictness:
        problems.append(f"approvals: must be one of {', '.join(strictness)}")
    elif strictness.index(wanted) < strictness.index(policy):
        problems.append(f"approvals: the policy of this project is {policy}; a run can only be stricter")
    return problems


def _audit(run: AgentRun, actor: str, action: str, detail: dict[str, Any]) -> None:
    audit(actor, action, (run.project_id, None, None), detail)
