"""Holds a call until a person has approved it, where a policy says so.

A call that no policy holds does not get here.
"""

import asyncio
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel

from projects.accounts.authentication import Caller
from projects.policy.call_risk import is_asked, judged
from projects.sessions.approvals.asking import Asked, HeldCall, approval_awaited, asked_about
from projects.sessions.waiting import clamped

ModelT = TypeVar("ModelT", bound=BaseModel)

WAIT_SECONDS: Final = 10.0
"""The wait of a call whose tool has no argument for it."""


async def held(tool: str, model: ModelT, caller: Caller) -> tuple[ModelT, Caller]:
    """The call as it may be carried out: its arguments, and its caller with the permit.

    Raises ApprovalPending, ApprovalDenied, ApprovalExpired, ApprovalLimitReached, RequestIdReused
    and SessionNotFound.
    """
    given = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if not is_asked(caller.approvals, judged(tool, given)):
        return model, caller.cleared()
    request_id: UUID | None = getattr(model, "request_id", None)
    question = HeldCall(caller=caller, tool=tool, arguments=given, request_id=request_id)
    asked = await asked_about(question)
    if asked is None:
        return model, caller.cleared()
    name, wait_seconds = _wait_of(model)
    began = asyncio.get_running_loop().time()
    if asked.is_pending:
        asked = await approval_awaited(asked, clamped(wait_seconds))
    permit = asked.require_approved()
    waited = asyncio.get_running_loop().time() - began
    return _carried_on(model, asked, name, wait_seconds - waited), caller.cleared(permit)


def _wait_of(model: BaseModel) -> tuple[str, float]:
    """The argument that says how long the call may wait, and its value."""
    if "wait_seconds" in type(model).model_fields:
        return "wait_seconds", float(getattr(model, "wait_seconds"))  # noqa: B009
    return "", WAIT_SECONDS


def _carried_on(model: ModelT, asked: Asked, waits: str, seconds_left: float) -> ModelT:
    """The call under the request id of its question, with what is left of its wait."""
    changes: dict[str, Any] = {"request_id": asked.request_id}
    if waits:
        changes[waits] = max(0.0, seconds_left)
    return model.model_copy(update=changes)
