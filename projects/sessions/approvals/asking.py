"""Ask a person about a call, once, and wait for the answer.

The question is a row before anybody is called, and it names the ``request_id`` under which the call
is carried out. So a repeat of the call finds the question, and an approved call is done once.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils.crypto import salted_hmac

from projects.accounts import ages
from projects.accounts.authentication import Caller
from projects.accounts.permits import Permit
from projects.audit.log import audit, person
from projects.conf import conf
from projects.errors.access import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalLimitReached,
    ApprovalNotFound,
    ApprovalPending,
    ChangedSinceApproval,
)
from projects.errors.calls import RequestIdReused
from projects.models import ActionRequest, ApiToken, Approval, Project
from projects.policy.call_risk import (
    MONITORS,
    STARTERS,
    WAITING_ARGUMENTS,
    Judgement,
    is_asked,
    judged,
)
from projects.sessions import lifetimes
from projects.sessions.approvals import attention
from projects.sessions.approvals.targets import Found, found_target
from projects.sessions.idempotency import NEVER_BEGAN
from projects.sessions.selectors import controller_for
from projects.sessions.transactions.acting import in_one_transaction
from projects.sessions.transactions.permits import USED
from projects.sessions.waiting import watch
from projects.storage import clock
from projects.storage.access import in_database
from projects.storage.sealing import open_or_none, seal
from projects.wakeups.doorbells import Doorbell, approval_group

HIDDEN: Final = "(hidden input)"
TYPED: Final = frozenset({"input_text", "keys", "input"})
_ANSWER = Approval.Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A call that may need an approval. ``request_id`` None: the caller gave none.

    ``judgement``, ``owner``, ``origin`` and ``named_host`` are given for calls of runs, whose steps
    tell more than the rows of sessions.
    """

    caller: Caller
    tool: str
    arguments: Mapping[str, Any]
    request_id: UUID | None = None
    judgement: Judgement | None = None
    owner: str = ""
    origin: Mapping[str, Any] = field(default_factory=dict)
    named_host: str = ""
    is_hidden: bool = False
    files: tuple[tuple[str, str], ...] | None = None

    @property
    def digest(self) -> str:
        """The fingerprint of what is to be done. It is keyed: a password could be guessed."""
        acting = {
            name: value for name, value in self.arguments.items() if name not in WAITING_ARGUMENTS
        }
        canonical = json.dumps([self.tool, acting], sort_keys=True, default=str)
        return salted_hmac("holdline.approval", canonical, algorithm="sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to a person, and its answer so far.

    ``is_new``: it was asked just now. ``is_forgotten``: the call was carried out, and what came of
    it is not kept any more.
    """

    id: int
    request_id: UUID
    answer: str
    reason: str
    permit: Permit
    is_new: bool = False
    is_forgotten: bool = False

    @property
    def is_pending(self) -> bool:
        """True while nobody has answered, and somebody still can."""
        return self.answer == _ANSWER.PENDING

    def require_approved(self) -> Permit:
        """The permit to carry the call out.

        Raises ApprovalPending, ApprovalDenied, ApprovalExpired, or ChangedSinceApproval for a call
        whose result is forgotten.
        """
        if self.is_pending:
            raise ApprovalPending(self.id, link_to(self.id), self.request_id)
        if self.answer == _ANSWER.DENIED:
            raise ApprovalDenied(self.reason)
        if self.answer != _ANSWER.APPROVED:
            raise ApprovalExpired(self.id)
        if self.is_forgotten:
            raise ChangedSinceApproval(USED)
        return self.permit


def link_to(approval_id: int) -> str:
    """The address of the page where a person answers."""
    return f"{conf.public_url}/approvals/{approval_id}/"


async def host_to_look_at(question: HeldCall) -> UUID | None:
    """The host whose files a question is about; None if somebody was asked, or no files matter."""
    return await in_database(_host_to_look_at, question)


async def approval_request(question: HeldCall) -> Asked | None:
    """Ask a person, in a database thread: see ``approval_ask``."""
    return await in_database(approval_ask, question)


def _host_to_look_at(question: HeldCall) -> UUID | None:
    if question.tool not in STARTERS or _known(question) is not None:
        return None
    _require_room(question.caller.project_id)
    found = found_target(question.caller, question.tool, question.arguments, question.named_host)
    return found.target.controller_id


@in_one_transaction
def approval_ask(question: HeldCall) -> Asked | None:
    """Ask a person about the call, unless somebody was asked already; None if no one has to be.

    Raises ApprovalLimitReached, RequestIdReused, SessionNotFound, and for a start what
    ``selectors.controller_for`` raises: nobody approves a start on a host that nobody knows.
    """
    # The lock comes first: two equal calls at once are one question.
    project = Project.objects.select_for_update(no_key=True).get(id=question.caller.project_id)
    if (known := _known(question)) is not None:
        return asked_of(known)
    found = found_target(question.caller, question.tool, question.arguments, question.named_host)
    judgement = question.judgement or judged(question.tool, question.arguments, found.standing)
    if not is_asked(question.caller.approvals, judgement):
        return None
    if question.tool in STARTERS and found.target.controller_id is None:
        named = question.arguments.get("controller") or question.named_host
        controller_for(project.id, str(named) if named else None)
    _require_room(project.id)
    return replace(asked_of(_created(question, found, judgement)), is_new=True)


async def approval_awaited(asked: Asked, wait_seconds: float) -> Asked:
    """Wait until a person has answered, for at most so long. Returns the question as it is then.

    Raises Unauthenticated if the caller's token was revoked meanwhile.
    """

    def look(is_last: bool) -> Asked | None:
        now = asked_now(asked.id)
        return None if now.is_pending and not is_last else now

    async with Doorbell(approval_group(asked.id)) as bell:
        return await watch(bell, look, wait_seconds, look_first=True, is_offered=False)


def asked_now(approval_id: int) -> Asked:
    """The question as it is now. Raises ApprovalNotFound."""
    row = Approval.objects.filter(id=approval_id).first()
    if row is None:
        raise ApprovalNotFound(approval_id)
    return asked_of(row)


def asked_of(row: Approval) -> Asked:
    """The question of a row. One whose time is over counts as expired before it is swept."""
    answer = row.answer
    is_over = row.expires_at is not None and row.expires_at <= clock.approvals_now()
    fate = _fate(row) if answer == _ANSWER.APPROVED else _Fate.NOT_BEGUN
    is_open = answer in {_ANSWER.PENDING, _ANSWER.APPROVED} and fate is _Fate.NOT_BEGUN
    if is_over and is_open:
        answer = _ANSWER.EXPIRED
    files = None if row.files is None else tuple((path, digest) for path, digest in row.files)
    log_file = row.session_command if row.tool in MONITORS else ""
    permit = Permit(row.id, row.controller_id, row.input_seq, files, row.prompt, log_file)
    is_forgotten = fate is _Fate.FORGOTTEN
    return Asked(row.id, row.request_id, answer, row.reason, permit, is_forgotten=is_forgotten)


class _Fate(Enum):
    """Says whether a call was carried out. A start that began nothing was not."""

    NOT_BEGUN = auto()
    BEGUN = auto()
    FORGOTTEN = auto()


def _fate(row: Approval) -> _Fate:
    done = ActionRequest.objects.filter(project_id=row.project_id, request_id=row.request_id)
    states = list(done.values_list("session__state", flat=True))
    if not states:
        return _Fate.NOT_BEGUN if row.used_at is None else _Fate.FORGOTTEN
    return _Fate.NOT_BEGUN if states[0] in NEVER_BEGAN else _Fate.BEGUN


def _known(question: HeldCall) -> Approval | None:
    rows = Approval.objects.filter(project_id=question.caller.project_id)
    if question.request_id is None:
        return _joined(rows, question)
    known = rows.filter(request_id=question.request_id).first()
    if known is not None and not _is_the_same(known, question):
        raise RequestIdReused
    return known


def _is_the_same(known: Approval, question: HeldCall) -> bool:
    # The person saw who asked, so nobody else carries out what was approved.
    caller = question.caller
    is_same_caller = (known.asked_by, known.token_id) == (caller.label[:128], caller.token_id)
    return is_same_caller and known.digest in {question.digest, ""}


def _joined(rows: QuerySet[Approval], question: HeldCall) -> Approval | None:
    """The open question of the same caller about the same call, for a caller that names no id."""
    mine = rows.filter(
        asked_by=question.caller.label[:128],
        token_id=question.caller.token_id,
        digest=question.digest,
        answer__in=(_ANSWER.PENDING, _ANSWER.APPROVED),
    )
    candidates = mine.exclude(expires_at__lte=clock.approvals_now()).order_by("id")
    return next((row for row in candidates if _fate(row) is _Fate.NOT_BEGUN), None)


def _require_room(project_id: UUID) -> None:
    pending = Approval.objects.filter(project_id=project_id, answer=_ANSWER.PENDING)
    if pending.exclude(expires_at__lte=clock.approvals_now()).count() >= conf.max_pending_approvals:
        raise ApprovalLimitReached(conf.max_pending_approvals)


def _created(question: HeldCall, found: Found, judgement: Judgement) -> Approval:
    caller, now = question.caller, clock.now()
    row = Approval.objects.create(
        project_id=caller.project_id,
        request_id=question.request_id or ages.new_id(),
        asked_by=caller.label[:128],
        token_id=caller.token_id,
        owner=question.owner or _owner_of(caller),
        origin=dict(question.origin),
        tool=question.tool,
        sealed_arguments=seal(json.dumps(_shown(question, found)).encode()),
        digest=question.digest,
        files=None if question.files is None else list(question.files),
        risk=judgement.risk,
        risk_reason=judgement.reason,
        created_at=now,
        expires_at=now + timedelta(seconds=conf.approval_seconds),
        **asdict(found.target),
    )
    if found.session is not None and not question.origin:
        lifetimes.hold(found.session, cause_of(row.id))
    attention.call_person(row)
    about = (row.project_id, row.controller_id, row.session_id)
    detail = {"approval": row.id, "tool": row.tool, "risk": row.risk}
    audit(caller.label, "approval.ask", about, detail)
    return row


def arguments_of(approval: Approval) -> dict[str, Any] | None:
    """The arguments of the call, as a person is shown them; None if no key opens them any more."""
    plain = open_or_none(approval.sealed_arguments, f"the call of approval {approval.pk}")
    if plain is None:
        return None
    arguments: dict[str, Any] = json.loads(plain)
    return arguments


def cause_of(approval_id: int) -> str:
    """The cause of a paused lifetime while a call about the session waits for its approval."""
    return f"approval {approval_id}"


def _owner_of(caller: Caller) -> str:
    """The person whom the caller's token belongs to, as audit rows name them; empty for nobody."""
    if caller.token_id is None:
        return ""
    token = ApiToken.objects.select_related("owner").filter(id=caller.token_id).first()
    return person(token.owner.get_username()) if token is not None and token.owner else ""


def _shown(question: HeldCall, found: Found) -> dict[str, Any]:
    is_hidden = question.is_hidden or found.asks_for_secret
    return {
        name: HIDDEN if is_hidden and name in TYPED else value
        for name, value in question.arguments.items()
    }
