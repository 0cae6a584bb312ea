"""Holds a call until a person has approved it, where a policy says so.

A call that no policy holds does not get here.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel

from controller_client.command_policy.directories import line_of, start_of
from controller_client.protocol.messages import NameFiles
from projects.accounts.authentication import Caller
from projects.monitors.questions import files_named
from projects.policy.call_risk import is_asked, judged
from projects.sessions.approvals.asking import (
    Asked,
    HeldCall,
    approval_awaited,
    approval_request,
    host_to_look_at,
)
from projects.sessions.waiting import clamped

ModelT = TypeVar("ModelT", bound=BaseModel)

WAIT_SECONDS: Final = 10.0
"""The wait of a call whose tool has no argument for it."""
_WAITING: Final = "wait_seconds"


@dataclass(slots=True)
class FirstRound:
    """A call whose client can show its user a page; ``has_asked``: the call asked a person."""

    has_asked: bool = False


_FIRST_ROUND: ContextVar[FirstRound | None] = ContextVar("_FIRST_ROUND", default=None)


@contextmanager
def first_round() -> Iterator[FirstRound]:
    """In the block a call that asks a person does not wait for the answer.

    A repeat of such a call waits, because the page of its question was shown before.
    """
    this = FirstRound()
    token = _FIRST_ROUND.set(this)
    try:
        yield this
    finally:
        _FIRST_ROUND.reset(token)


async def held(tool: str, model: ModelT, caller: Caller) -> tuple[ModelT, Caller]:
    """The call as it may be carried out: its arguments, and its caller with the permit.

    Raises ApprovalPending, ApprovalDenied, ApprovalExpired, and what ``approval_ask`` raises.
    """
    given = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    if not is_asked(caller.approvals, judged(tool, given)):
        return model, caller.cleared()
    request_id: UUID | None = getattr(model, "request_id", None)
    question = HeldCall(caller=caller, tool=tool, arguments=given, request_id=request_id)
    asked = await approval_request(await with_files(question))
    if asked is None:
        return model, caller.cleared()
    name, wait_seconds = _wait_of(model)
    began = asyncio.get_running_loop().time()
    this_round = _FIRST_ROUND.get()
    if this_round is not None and asked.is_new and asked.is_pending:
        this_round.has_asked = True
    elif asked.is_pending:
        asked = await approval_awaited(asked, clamped(wait_seconds))
    permit = asked.require_approved()
    waited = asyncio.get_running_loop().time() - began
    return _carried_on(model, asked, name, wait_seconds - waited), caller.cleared(permit)


async def with_files(question: HeldCall) -> HeldCall:
    """The question with the files that its host names, unless somebody was asked already."""
    host = await host_to_look_at(question)
    if host is None:
        return question
    given = question.arguments
    line, cwd = str(given.get("command", "")), given.get("cwd") or given.get("working_directory")
    env = given.get("env")
    asked = NameFiles(command=line_of(line, env), cwd=start_of(cwd, env))
    named = await files_named(host, asked)
    if named is None:
        return question
    return replace(question, files=tuple((file.path, file.sha256) for file in named))


def _wait_of(model: BaseModel) -> tuple[str, float]:
    """The argument that says how long the call may wait, and its value."""
    if _WAITING in type(model).model_fields:
        return _WAITING, float(getattr(model, _WAITING))
    return "", WAIT_SECONDS


def _carried_on(model: ModelT, asked: Asked, waits: str, seconds_left: float) -> ModelT:
    """The call under the request id of its question, with what is left of its wait."""
    changes: dict[str, Any] = {"request_id": asked.request_id}
    if waits:
        changes[waits] = max(0.0, seconds_left)
    return model.model_copy(update=changes)
