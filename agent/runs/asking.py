"""The question to a person about a call of a run, if the policy wants one."""

from collections.abc import Sequence
from dataclasses import replace

from agent.conf import conf
from agent.llm import scripted
from agent.models import AgentRun, AgentStep
from agent.runs import answered_calls, history, records
from agent.runs.toolbox import Toolbox
from projects.models.accounts import stricter
from projects.policy.call_risk import ASK_RISKY, AUTO, is_asked, judged
from projects.sessions.approvals.asking import HeldCall


def policy_of(run: AgentRun) -> str:
    """The policy for calls of the run now, ``auto`` if nobody is asked about any of them.

    That of its project, or the setting, may have become stricter since the run was submitted.
    """
    policy = stricter(run.approvals, records.policy_of_runs(run.project, conf.approvals))
    # The calls of the demo stand in this repository, so they are known to be harmless. The policy
    # ask-all asks about them all the same.
    return AUTO if policy == ASK_RISKY and run.model == scripted.DEMO else policy


def question_of(
    run: AgentRun,
    steps: Sequence[AgentStep],
    index: int,
    toolbox: Toolbox,
    approved: set[tuple[int, int]],
) -> HeldCall | None:
    """The question about call ``index`` of the newest step; None if no one has to be asked.

    ``approved`` are (step, index) of calls that a person approved.
    """
    step, policy = steps[-1], policy_of(run)
    call = answered_calls.calls_of(step)[index]
    judgement = judged(call.name, call.arguments, history.standing_of(call, steps, approved))
    if not is_asked(policy, judgement):
        return None
    origin = {"run": str(run.id), "step": step.number, "call": index}
    return HeldCall(
        caller=replace(toolbox.caller, approvals=policy),
        tool=call.name,
        arguments=call.arguments or {},
        request_id=toolbox.request_id(step.number, index),
        judgement=judgement,
        owner=run.submitted_by,
        origin=origin | ({"told_by": run.told_by} if run.told_by else {}),
        named_host=run.controllers[0] if len(run.controllers) == 1 else "",
        is_hidden=history.is_hidden(call, steps),
    )
