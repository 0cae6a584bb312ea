"""End a question about a call: a person answers, nobody does in time, or it is withdrawn.

Each end is one transaction, and the first one stays.
"""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from projects.audit.log import audit
from projects.conf import conf
from projects.errors.access import ApprovalNotFound, CallNotShown, OwnCall
from projects.models import ActionRequest, Approval
from projects.output.recording.events import NewEvent, append_locking
from projects.sessions import lifetimes
from projects.sessions.approvals import attention
from projects.sessions.approvals.asking import arguments_of, cause_of
from projects.storage import clock

_ANSWER = Approval.Answer
_MOST_REASON_CHARS: Final = 1000
_FORGOTTEN_AT_ONCE: Final = 200
BEFORE_END: Final[list[Callable[[Approval], None]]] = []
"""Called with each question that is about to end, before its row is locked, in that transaction."""
AFTER_END: Final[list[Callable[[Approval], None]]] = []
"""Called with each question that ended, in the transaction of its end."""


def is_own_call(approval: Approval, actor: str) -> bool:
    """True if the project wants four eyes, and the actor asked for the call, or told its run to."""
    asked_for_it = {approval.owner, *approval.origin.get("told_by", ())}
    return approval.project.wants_four_eyes and actor in asked_for_it


@transaction.atomic
def approval_answer(*, approval_id: int, is_approved: bool, actor: str, reason: str = "") -> bool:
    """Answer a question. Returns False if it is over: answered, expired or withdrawn.

    Raises ApprovalNotFound, OwnCall where the project wants four eyes, and CallNotShown if a call
    that nobody can read is to be approved.
    """
    approval = Approval.objects.select_related("project").filter(id=approval_id).first()
    if approval is None:
        raise ApprovalNotFound(approval_id)
    if is_own_call(approval, actor):
        raise OwnCall
    if is_approved and arguments_of(approval) is None:
        raise CallNotShown(approval_id)
    answer = _ANSWER.APPROVED if is_approved else _ANSWER.DENIED
    return _end(approval, answer, actor, reason[:_MOST_REASON_CHARS])


def approvals_overdue() -> list[int]:
    """The open questions whose time is over."""
    rows = Approval.objects.filter(answer=_ANSWER.PENDING, expires_at__lte=clock.approvals_now())
    return list(rows.order_by("id").values_list("id", flat=True)[:500])


def approvals_forget() -> int:
    """Remove some questions that ended as long ago as sessions are kept. Returns their number.

    One of a call that was carried out stays as long as its session, and that long once more. Until
    then a repeat of the call is told so, and begins nothing.
    """
    seconds = conf.session_retention_seconds
    if not seconds or not clock.can_tell(seconds):
        return 0
    before = clock.now() - timedelta(seconds=seconds)
    done = ActionRequest.objects.filter(
        project_id=OuterRef("project_id"), request_id=OuterRef("request_id")
    )
    over = Approval.objects.filter(
        Q(used_at=None) | Q(used_at__lt=before), ~Exists(done), answered_at__lt=before
    )
    ids = list(over.order_by("answered_at").values_list("id", flat=True)[:_FORGOTTEN_AT_ONCE])
    return Approval.objects.filter(id__in=ids).delete()[0]


def approvals_keep(requests: Iterable[ActionRequest]) -> None:
    """Keep the questions about calls of which nothing else will be known from now on."""
    for request in requests:
        Approval.objects.filter(
            project_id=request.project_id, request_id=request.request_id, used_at__isnull=False
        ).update(used_at=clock.now())


@transaction.atomic
def approval_expire(approval_id: int) -> bool:
    """End a question that nobody answered in time. Returns False if it was over before."""
    approval = Approval.objects.filter(id=approval_id, answer=_ANSWER.PENDING).first()
    return approval is not None and _end(approval, _ANSWER.EXPIRED, "sweeper")


@transaction.atomic
def approvals_withdraw(which: Q, *, actor: str) -> None:
    """Withdraw open questions, because nobody would carry the calls out."""
    for approval in Approval.objects.filter(which, answer=_ANSWER.PENDING).order_by("id"):
        _end(approval, _ANSWER.WITHDRAWN, actor)


def of_token(token_id: UUID) -> Q:
    """The questions about calls with this API token."""
    return Q(token_id=token_id)


def _end(approval: Approval, answer: str, actor: str, reason: str = "") -> bool:
    for before in BEFORE_END:
        before(approval)
    now = clock.now()
    still = Q(expires_at__isnull=True) | Q(expires_at__gt=clock.approvals_now())
    if answer not in {_ANSWER.APPROVED, _ANSWER.DENIED}:
        still = Q()
    approval.answer, approval.answered_by, approval.reason = answer, actor[:160], reason
    approval.answered_at = now
    if answer == _ANSWER.APPROVED:
        approval.expires_at = now + timedelta(seconds=conf.approval_seconds)
    names = ("answer", "answered_by", "reason", "answered_at", "expires_at")
    changes = {name: getattr(approval, name) for name in names}
    rows = Approval.objects.filter(still, id=approval.id, answer=_ANSWER.PENDING)
    if not rows.update(**changes):
        return False
    attention.release_person(approval)
    for after in AFTER_END:
        after(approval)
    lifetimes.release_all(cause_of(approval.id))
    _record(approval, actor)
    return True


def _record(approval: Approval, actor: str) -> None:
    about = (approval.project_id, approval.controller_id, approval.session_id)
    what = {"tool": approval.tool, "risk": approval.risk, "answer": str(approval.answer)}
    if approval.session_id is not None:
        append_locking(NewEvent(approval.session_id, "approval", actor=actor, detail=what))
    detail = {"approval": approval.id, **what, "host": approval.host, "asked_by": approval.asked_by}
    audit(actor, "approval.answer", about, detail)
