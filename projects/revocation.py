"""Taking back what was given: API tokens, credentials of controllers, controllers.

A revocation is one transaction: it is on record, the connection it is about is fenced by a new epoch, and what was not sent yet is
taken out of the outbox. No doorbell is needed: a connection looks at its standing once per safety net, a waiting call as often.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Min, QuerySet

from controller_client.protocol.session_state import SessionState
from projects import clock
from projects.audit_log import audit
from projects.dispatch import START_TYPES
from projects.inbound.ending import end_session
from projects.models import ApiToken, CommandSession, Controller, ControllerCommand, ControllerCredential

REVOKED: Final = "REVOKED"
_NOT_STARTED: Final = "it was revoked who could have started it"
_NOT_TYPED: Final = "it was revoked who could have typed it"


@transaction.atomic
def api_token_revoke(*, token: ApiToken, actor: str) -> None:
    """The token's next call is refused, its waiting calls end, what it wanted and no host was sent is dropped. Twice changes nothing."""
    if not ApiToken.objects.filter(id=token.id, revoked_at__isnull=True).update(revoked_at=clock.now()):
        return
    cancelled = _cancel(ControllerCommand.objects.filter(token_id=token.id), actor)
    audit(actor, "api_token.revoke", (token.project_id, None, None), {"key_id": token.key_id, "name": token.name, "cancelled": cancelled})


@transaction.atomic
def controller_credential_revoke(*, credential: ControllerCredential, actor: str) -> None:
    """A connection that showed it is fenced and closed, and what waits for the host goes with it. Twice changes nothing."""
    now = clock.now()
    if not ControllerCredential.objects.filter(id=credential.id, revoked_at__isnull=True).update(revoked_at=now):
        return
    controller = credential.controller
    is_closed, cancelled = _fence(controller, now, actor, connected_credential_id=credential.id)
    detail = {"key_id": credential.key_id, "closed": is_closed, "cancelled": cancelled}
    audit(actor, "controller_credential.revoke", (controller.project_id, controller.id, None), detail)


@transaction.atomic
def controller_revoke(*, controller: Controller, actor: str) -> None:
    """The host is out, with all its credentials, and its name is free; its sessions and their output stay. Twice changes nothing."""
    now = clock.now()
    if not Controller.objects.filter(id=controller.id, revoked_at__isnull=True).update(revoked_at=now):
        return
    ControllerCredential.objects.filter(controller_id=controller.id, revoked_at__isnull=True).update(revoked_at=now)
    _, cancelled = _fence(controller, now, actor)
    audit(actor, "controller.revoke", (controller.project_id, controller.id, None), {"name": controller.name, "cancelled": cancelled})


def _fence(controller: Controller, now: datetime, actor: str, **connection: object) -> tuple[bool, int]:
    """Whether there was such a connection, and how many commands were taken out of the outbox."""
    fenced = Controller.objects.filter(id=controller.id, **connection).update(
        epoch=F("epoch") + 1, lease_expires_at=now, connected_credential_id=None
    )
    return bool(fenced), _cancel(ControllerCommand.objects.filter(controller_id=controller.id), actor) if fenced else 0


def _cancel(commands: QuerySet[ControllerCommand], actor: str) -> int:
    """Takes out of the outbox what no host was sent: starts, and inputs that nothing was typed after. Ends of programs stay ordered."""
    unsent = commands.filter(settled_at__isnull=True, sent_epoch__isnull=True)
    starts = list(unsent.filter(type__in=START_TYPES).values_list("session_id", flat=True))
    sessions = CommandSession.objects.select_for_update(no_key=True, of=("self",)).filter(id__in=starts, state=SessionState.PENDING)
    cancelled = 0
    for session in sessions.order_by("id"):
        end_session(session, SessionState.EXPIRED, actor=actor, ended_by=actor, failure_code=REVOKED, failure_message=_NOT_STARTED)
        cancelled += 1
    inputs = unsent.filter(type="SEND_INPUT", input_seq__isnull=False).order_by()
    for session_id, first in inputs.values_list("session_id").annotate(Min("input_seq")):
        cancelled += _withdraw_inputs(session_id, first, set(inputs.filter(session_id=session_id).values_list("id", flat=True)))
    return cancelled


def _withdraw_inputs(session_id: UUID, first: int, ours: set[int]) -> int:
    """All inputs from ``first`` on, if they are ``ours`` and unsent. Their numbers are given again: the host takes them without a hole."""
    session = CommandSession.objects.select_for_update(no_key=True).filter(id=session_id)
    session.first()
    tail = list(ControllerCommand.objects.select_for_update().filter(session_id=session_id, input_seq__gte=first))
    if any(command.sent_epoch is not None or command.id not in ours for command in tail):
        return 0
    ControllerCommand.objects.filter(id__in=[command.id for command in tail]).update(
        settled_at=clock.now(), body=None, input_seq=None, failure_code=REVOKED, failure_message=_NOT_TYPED
    )
    session.update(input_seq=first - 1)
    return len(tail)
