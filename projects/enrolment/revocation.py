"""Revocation of API tokens, of credentials of controllers, and of controllers.

A revocation is one transaction: it is audited, a new epoch fences the connection it is about, and
unsent commands leave the outbox. It needs no doorbell: connections and waiting calls look once per
round of the reconciler.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Min, QuerySet

from controller_client.protocol.session_state import SessionState
from projects.audit.log import audit
from projects.models import (
    ApiToken,
    CommandSession,
    Controller,
    ControllerCommand,
    ControllerCredential,
    EnrolmentCode,
)
from projects.sessions.approvals.answering import approvals_withdraw, of_token
from projects.sessions.outbox import START_TYPES
from projects.sessions.state import end_lost, end_session
from projects.storage import clock

REVOKED: Final = "REVOKED"
_NOT_STARTED: Final = "the token or the host that it needed was revoked before it started"
_NOT_TYPED: Final = "the token or the host that it needed was revoked before it was typed"
_SENT: Final = (SessionState.SENT, SessionState.RUNNING)
_GONE: Final = "its host was revoked: the program may still run there, and nobody reports on it"


@transaction.atomic
def api_token_revoke(*, token: ApiToken, actor: str) -> None:
    """Refuses the token's next calls, ends its waiting calls, and drops its unsent commands.

    Revoking twice changes nothing.
    """
    if not ApiToken.objects.filter(id=token.id, revoked_at__isnull=True).update(
        revoked_at=clock.now()
    ):
        return
    cancelled = _cancel(ControllerCommand.objects.filter(token_id=token.id), actor)
    approvals_withdraw(of_token(token.id), actor=actor)
    audit(
        actor,
        "api_token.revoke",
        (token.project_id, None, None),
        {"key_id": token.key_id, "name": token.name, "cancelled": cancelled},
    )


@transaction.atomic
def controller_credential_revoke(*, credential: ControllerCredential, actor: str) -> None:
    """Closes the connection that uses the credential, and drops unsent commands for its host.

    Revoking twice changes nothing.
    """
    now = clock.now()
    # The lock under which a credential is replaced by another one.
    Controller.objects.select_for_update().filter(id=credential.controller_id).first()
    if not ControllerCredential.objects.filter(id=credential.id, revoked_at__isnull=True).update(
        revoked_at=now
    ):
        return
    controller = credential.controller
    is_closed, cancelled = _fence(controller, now, actor, connected_credential_id=credential.id)
    detail = {"key_id": credential.key_id, "closed": is_closed, "cancelled": cancelled}
    audit(
        actor, "controller_credential.revoke", (controller.project_id, controller.id, None), detail
    )


@transaction.atomic
def controller_revoke(*, controller: Controller, actor: str) -> None:
    """Revokes the host with all its credentials and codes, and frees its name.

    Its sessions are LOST, so that they take up no place and no call waits for them. Their output
    stays. Revoking twice changes nothing.
    """
    now = clock.now()
    if not Controller.objects.filter(id=controller.id, revoked_at__isnull=True).update(
        revoked_at=now
    ):
        return
    ControllerCredential.objects.filter(
        controller_id=controller.id, revoked_at__isnull=True
    ).update(revoked_at=now)
    # A code that was to replace this host must not replace the next one of its name.
    codes = EnrolmentCode.objects.filter(
        project_id=controller.project_id,
        controller_name=controller.name,
        is_replacement=True,
        used_at__isnull=True,
        revoked_at__isnull=True,
    ).update(revoked_at=now)
    _, cancelled = _fence(controller, now, actor)
    sent = CommandSession.objects.select_for_update(no_key=True, of=("self",)).filter(
        controller=controller, state__in=_SENT
    )
    for session in sent.order_by("id"):
        end_lost(session, actor=actor, note=_GONE)
    audit(
        actor,
        "controller.revoke",
        (controller.project_id, controller.id, None),
        {"name": controller.name, "cancelled": cancelled, "codes": codes},
    )


def _fence(
    controller: Controller, now: datetime, actor: str, **connection: object
) -> tuple[bool, int]:
    """Fences the controller's connection and drops its unsent commands.

    Returns whether there was such a connection, and how many commands were dropped.
    """
    fenced = Controller.objects.filter(id=controller.id, **connection).update(
        epoch=F("epoch") + 1, lease_expires_at=now, connected_credential_id=None
    )
    return bool(fenced), _cancel(
        ControllerCommand.objects.filter(controller_id=controller.id), actor
    ) if fenced else 0


def _cancel(commands: QuerySet[ControllerCommand], actor: str) -> int:
    """Drops unsent starts, and unsent inputs that no other input follows. Returns their number.

    Orders to end a program stay in the outbox.
    """
    unsent = commands.filter(settled_at__isnull=True, sent_epoch__isnull=True)
    starts = list(unsent.filter(type__in=START_TYPES).values_list("session_id", flat=True))
    sessions = CommandSession.objects.select_for_update(no_key=True, of=("self",)).filter(
        id__in=starts, state=SessionState.PENDING
    )
    cancelled = 0
    for session in sessions.order_by("id"):
        end_session(
            session,
            SessionState.EXPIRED,
            actor=actor,
            ended_by=actor,
            failure_code=REVOKED,
            failure_message=_NOT_STARTED,
        )
        cancelled += 1
    inputs = unsent.filter(type="SEND_INPUT", input_seq__isnull=False).order_by()
    for session_id, first in inputs.values_list("session_id").annotate(Min("input_seq")):
        cancelled += _withdraw_inputs(
            session_id,
            first,
            set(inputs.filter(session_id=session_id).values_list("id", flat=True)),
        )
    return cancelled


def _withdraw_inputs(session_id: UUID, first: int, ours: set[int]) -> int:
    """Drops all inputs from number ``first`` on, if all are ``ours`` and unsent.

    Their numbers are used again, because the host takes inputs without a gap.
    """
    session = CommandSession.objects.select_for_update(no_key=True).filter(id=session_id)
    session.first()
    tail = list(
        ControllerCommand.objects.select_for_update().filter(
            session_id=session_id, input_seq__gte=first
        )
    )
    if any(command.sent_epoch is not None or command.id not in ours for command in tail):
        return 0
    ControllerCommand.objects.filter(id__in=[command.id for command in tail]).update(
        settled_at=clock.now(),
        body=None,
        input_seq=None,
        failure_code=REVOKED,
        failure_message=_NOT_TYPED,
    )
    session.update(input_seq=first - 1)
    return len(tail)
