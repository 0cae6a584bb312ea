"""A run as data for programs: the objects of ``--json``. Names are those of the rows."""

from collections.abc import Sequence
from typing import Any, Final

from agent.models import AgentRun, AgentStep
from projects.models import Approval
from projects.sessions.approvals.asking import arguments_of
from projects.sessions.approvals.disclosure import disclosure_of

_OF_RUN: Final = (
    "task",
    "model",
    "controllers",
    "approvals",
    "state",
    "stop_reason",
    "report",
    "is_successful",
    "submitted_by",
    "max_steps",
    "max_tokens",
    "max_cost_cents",
    "max_run_seconds",
    "output_bytes",
    "input_tokens",
    "output_tokens",
    "cost_cents",
    "worked_seconds",
    "interruptions",
    "created_at",
    "started_at",
    "ended_at",
)
_OF_STEP: Final = (
    "number",
    "said_before",
    "text",
    "calls",
    "results",
    "is_complete",
    "input_tokens",
    "output_tokens",
    "cost_cents",
)
_OF_APPROVAL: Final = (
    "id",
    "asked_by",
    "tool",
    "risk",
    "risk_reason",
    "answer",
    "answered_by",
    "reason",
    "host",
    "session_id",
    "session_command",
    "live_programs",
)


def run_data(run: AgentRun) -> dict[str, Any]:
    """The run without its steps."""
    return {"id": run.id, "project": run.project.name, **_of(run, _OF_RUN)}


def transcript_data(
    run: AgentRun, steps: Sequence[AgentStep], approvals: Sequence[Approval]
) -> dict[str, Any]:
    """The run with all its steps and approvals."""
    said_and_done = [_of(step, _OF_STEP) for step in steps]
    return {
        **run_data(run),
        "steps": said_and_done,
        "approval_requests": [approval_data(one) for one in approvals],
    }


def approval_data(approval: Approval) -> dict[str, Any]:
    """An approval: the call, and the answer of a person."""
    step, call = approval.place
    place = {"run": approval.origin.get("run"), "step_number": step, "call_index": call}
    told = disclosure_of(approval)
    return {
        **place,
        "arguments": arguments_of(approval),
        **_of(approval, _OF_APPROVAL),
        "files": [{"path": file.path, "content": file.content} for file in told.files],
        "notices": told.notices,
    }


def _of(row: object, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}
