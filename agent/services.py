"""The use cases of runs: submit, stop and resume.

Each is one short transaction. Everything raised is a ControllerActionError. ``actor`` names who
acts in audit rows.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID, uuid4, uuid5

from django.db import transaction
from django.db.models import Q

from agent.conf import conf
from agent.errors import RunActive, RunNotFound
from agent.models import AgentRun
from agent.runs import judgement, records
from agent.runs.stored_text import is_storable
from projects.audit.log import audit
from projects.errors.calls import InvalidArgument
from projects.errors.hosts import ControllerOffline, NoControllerEnrolled
from projects.models import ApprovalPolicy, Controller, Project
from projects.sessions import lifetimes
from projects.sessions.approvals.answering import approvals_withdraw
from projects.storage import clock

MOST_TASK_CHARS: Final = 20_000
MOST_MODEL_CHARS: Final = 128
_STATE = AgentRun.State
OVER: Final = (_STATE.FINISHED, _STATE.FAILED, _STATE.STOPPED)
MOST_LIMIT: Final = 2**31 - 1
MOST_NAMES: Final = 20


class Limits(TypedDict, total=False):
    """The budget of a run, 0 cents for no limit, and the output that one call shows.

    A limit that is left out or None is that of the setting of the same name.
    """

    max_steps: int | None
    max_tokens: int | None
    max_cost_cents: int | None
    max_run_seconds: float | None
    output_bytes: int | None


@transaction.atomic
def run_submit(
    *,
    project: Project,
    task: str,
    actor: str,
    model: str = "",
    controllers: Sequence[str] = (),
    approvals: str = "",
    is_reserved: bool = False,
    run_id: UUID | None = None,
    **limits: Unpack[Limits],
) -> AgentRun:
    """Submits a new run. Any worker takes it up, unless it is reserved for one that asks for it.

    ``approvals`` can only be stricter than the project's policy. Settings have the defaults. What
    is submitted again under its ``run_id``, unchanged, is the same run; changed, it is another one,
    and the same one each time.

    Raises:
        InvalidArgument: with every problem of the arguments.
        NoControllerEnrolled, ControllerOffline: if no host could carry out a call.

    """
    policy = records.policy_of_runs(project, conf.approvals)
    wanted = approvals or policy
    hosts = list(Controller.objects.filter(project=project, revoked_at__isnull=True))
    model = model or conf.model
    problems = [*_problems(task, model, wanted, policy), *_limit_problems(limits)]
    unknown = set(controllers) - {host.name for host in hosts}
    known = ", ".join(sorted(host.name for host in hosts)[:MOST_NAMES]) or "none"
    problems += [
        f"controllers: there is no controller {name[:64]!r} in this project; there are: {known}"
        for name in sorted(unknown)
    ]
    if problems:
        raise InvalidArgument(problems)
    _require_online([host for host in hosts if not controllers or host.name in controllers])
    # Two of the same form at once take turns here.
    Project.objects.select_for_update(no_key=True).filter(pk=project.pk).first()
    asked = {
        "project": project,
        "task": task,
        "model": model,
        "controllers": list(controllers),
        "approvals": wanted,
        "submitted_by": actor[:128],
        **{name: getattr(conf, name) for name in Limits.__annotations__},
        **_given(limits),
    }
    own_id = run_id or uuid4()
    earlier = AgentRun.objects.filter(id=own_id).first()
    if earlier and any(getattr(earlier, name) != value for name, value in asked.items()):
        own_id = uuid5(own_id, json.dumps([str(asked[name]) for name in sorted(asked)]))
        earlier = AgentRun.objects.filter(id=own_id).first()
    if earlier:
        return earlier
    run = AgentRun.objects.create(id=own_id, is_reserved=is_reserved, **asked)
    _audit(
        run,
        actor,
        "agent_run.submit",
        {"run": str(run.id), "model": run.model, "approvals": run.approvals},
    )
    return run


@transaction.atomic
def run_stop(*, run_id: UUID, actor: str) -> AgentRun:
    """Stops the run: at once without a worker, otherwise within seconds.

    Its sessions run on until the end of their lifetimes. A run that is over stays as it is. Raises
    RunNotFound.
    """
    run = _locked(run_id)
    if run.state in OVER:
        return run
    now = clock.now()
    over = {
        "state": _STATE.STOPPED,
        "stop_reason": "stopped",
        "report": f"stopped by {actor}",
        "ended_at": now,
        "lease": None,
    }
    is_held = (
        run.state == _STATE.RUNNING
        and run.lease_expires_at is not None
        and run.lease_expires_at > now
    )
    changes: dict[str, Any] = {"stop_requested_by": actor[:128]} | ({} if is_held else over)
    approvals_withdraw(Q(asked_by=records.caller_label(run_id)), actor=actor)
    lifetimes.release_all(records.asks_cause(run_id))
    AgentRun.objects.filter(id=run_id).update(**changes)
    if not is_held:
        records.run_end_tell(run_id, _STATE.STOPPED, now)
    _audit(run, actor, "agent_run.stop", {"run": str(run.id)})
    run.refresh_from_db()
    return run


@transaction.atomic
def run_resume(
    *, run_id: UUID, actor: str, said: str = "", is_reserved: bool = False, **limits: Unpack[Limits]
) -> AgentRun:
    """Resumes a run that is over after its last complete step.

    ``said`` is a message to the model, after those that it has not read yet. Limits that are given
    replace those of the run; what it has used so far counts. Raises RunNotFound, RunActive or
    InvalidArgument.
    """
    run = _locked(run_id)
    if run.state not in OVER:
        raise RunActive(run_id)
    problems = _limit_problems(limits)
    # That an answer was cut off counts towards the end of a run, and this is a new beginning.
    unread = [text for text in run.said_next if not text.startswith(judgement.CUT)]
    said_next = [*unread, *([said] if said.strip() else [])]
    left = MOST_TASK_CHARS - sum(map(len, unread))
    if len(said) > left:
        problems.append(
            f"said: must have at most {left} characters, so that all the messages that the model "
            f"has not read have at most {MOST_TASK_CHARS}"
        )
    problems += _text_problems(said=said)
    if problems:
        raise InvalidArgument(problems)
    AgentRun.objects.filter(id=run_id).update(
        **_given(limits),
        state=_STATE.QUEUED,
        is_reserved=is_reserved,
        said_next=said_next,
        told_by=sorted({*(run.told_by or ()), actor[:128]}) if said.strip() else run.told_by,
        # Steps before this do not count as a lack of progress any more.
        nudged_at_step=run.steps.count() if run.nudged_at_step else 0,
        stop_reason="",
        stop_requested_by="",
        report="",
        is_successful=None,
        interruptions=0,
        ended_at=None,
    )
    _audit(run, actor, "agent_run.resume", {"run": str(run.id)})
    run.refresh_from_db()
    return run


@transaction.atomic
def run_reserve(*, run_id: UUID, is_reserved: bool) -> None:
    """Reserves the run for a worker that asks for it, or lets any worker take it up.

    The worker that has the run now keeps it.
    """
    AgentRun.objects.filter(id=run_id).update(is_reserved=is_reserved)


def _locked(run_id: UUID) -> AgentRun:
    """The run, with its row locked until the transaction ends. Raises RunNotFound."""
    run = AgentRun.objects.select_for_update().filter(id=run_id).first()
    if run is None:
        raise RunNotFound(run_id)
    return run


def _require_online(hosts: Sequence[Controller]) -> None:
    """Refuses a run without a host: it would cost money and do nothing."""
    if not hosts:
        raise NoControllerEnrolled
    now = clock.host_lease_now()
    if not any(host.lease_expires_at is not None and host.lease_expires_at > now for host in hosts):
        raise ControllerOffline(*(host.name for host in hosts))


def _given(limits: Limits) -> dict[str, Any]:
    return {name: limit for name, limit in limits.items() if limit is not None}


def _limit_problems(limits: Limits) -> list[str]:
    least = {"max_cost_cents": 0, "max_run_seconds": 0.001}
    return [
        f"{name}: must be {least.get(name, 1):g} to {MOST_LIMIT}"
        for name, limit in _given(limits).items()
        if not least.get(name, 1) <= limit <= MOST_LIMIT
    ]


def _text_problems(**texts: str) -> list[str]:
    return [
        f"{name}: contains a NUL or a lone surrogate, which is no character"
        for name, text in texts.items()
        if not is_storable(text)
    ]


def _problems(task: str, model: str, wanted: str, policy: str) -> list[str]:
    problems = _text_problems(task=task, model=model)
    if not task.strip() or len(task) > MOST_TASK_CHARS:
        problems.append(f"task: must have 1 to {MOST_TASK_CHARS} characters")
    if len(model) > MOST_MODEL_CHARS:
        problems.append(f"model: must have at most {MOST_MODEL_CHARS} characters")
    strictness = list(ApprovalPolicy.values)
    if wanted not in strictness:
        problems.append(f"approvals: must be one of {', '.join(strictness)}")
    elif strictness.index(wanted) < strictness.index(policy):
        problems.append(
            f"approvals: the policy of this project is {policy}, and a run can only be stricter"
        )
    return problems


def _audit(run: AgentRun, actor: str, action: str, detail: dict[str, Any]) -> None:
    audit(actor, action, (run.project_id, None, None), detail)
