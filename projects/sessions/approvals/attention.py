"""An open question calls a person; its end lets them go."""

from projects.attention.events import Cause, attention_raise, attention_resolve
from projects.models import Approval, AttentionKind


def call_person(approval: Approval) -> None:
    """Raise the event of a question, in the transaction that asks."""
    attention_raise(
        Cause(
            kind=AttentionKind.APPROVAL_WANTED,
            key=_key(approval),
            project_id=approval.project_id,
            controller_id=approval.controller_id,
            session_id=approval.session_id,
            path=f"/approvals/{approval.id}/",
            detail={"approval": approval.id, "tool": approval.tool, "risk": approval.risk},
        )
    )


def release_person(approval: Approval) -> None:
    """Resolve the event of a question, in the transaction that ends it."""
    attention_resolve(_key(approval), str(approval.answer), by=approval.answered_by)


def _key(approval: Approval) -> str:
    return f"approval:{approval.id}"
