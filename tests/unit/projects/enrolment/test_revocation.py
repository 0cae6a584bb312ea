"""A revocation is one transaction: on record, fenced, and what no host was sent is dropped."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.utils import timezone

from controller_client.protocol.messages import SendInput, StartInteractiveCmd
from controller_client.protocol.session_state import SessionState
from projects.accounts.authentication import Caller, check_caller
from projects.accounts.credentials import api_token_create, controller_credential_create
from projects.enrolment.revocation import (
    api_token_revoke,
    controller_credential_revoke,
    controller_revoke,
)
from projects.errors.access import Unauthenticated
from projects.errors.sessions import SessionEnded
from projects.link.inbound import hello as greeting
from projects.link.inbound.commands import take_commands
from projects.link.inbound.leases import Lease, check_standing
from projects.link.inbound.refusals import Fenced, Revoked, SecondInstance
from projects.models import (
    ApiToken,
    AuditEvent,
    CommandSession,
    Controller,
    ControllerCommand,
    ControllerCredential,
)
from projects.policy.typed_input import Typing
from projects.sessions import outbox
from projects.sessions.transactions.input import send_input
from tests.support.rows import make_controller, make_hello, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller()


def _connected(controller: Controller) -> ControllerCredential:
    credential, _ = controller_credential_create(controller=controller)
    greeting.hello(controller.id, make_hello(), credential.id)
    controller.refresh_from_db()
    credential.refresh_from_db()
    return credential


def _start(controller: Controller, token_id: UUID | None = None) -> CommandSession:
    session = make_session(controller, SessionState.PENDING)
    seq = outbox.allocate_seq(controller.id)
    message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    outbox.enqueue(
        controller_id=controller.id, session_id=session.id, message=message, token_id=token_id
    )
    return session


def _input(session: CommandSession, token_id: UUID | None = None) -> ControllerCommand:
    session.refresh_from_db()
    seq = outbox.allocate_seq(session.controller_id)
    session.input_seq += 1
    session.save()
    message = SendInput(seq=seq, session_id=str(session.id), input_seq=session.input_seq, data=b"x")
    outbox.enqueue(
        controller_id=session.controller_id,
        session_id=session.id,
        message=message,
        token_id=token_id,
    )
    return ControllerCommand.objects.get(controller_id=session.controller_id, seq=seq)


def test_revoking_a_credential_fences_its_connection_and_drops_the_outbox(
    controller: Controller,
) -> None:
    credential = _connected(controller)
    epoch = controller.epoch
    session, running = _start(controller), make_session(controller)
    typed = _input(running)
    for _ in range(2):
        controller_credential_revoke(credential=credential, actor="admin:a")
    with pytest.raises(Revoked):
        check_standing(Lease(controller.id, epoch, credential.id))
    assert take_commands(controller.id, epoch) == ([], [])
    controller.refresh_from_db()
    session.refresh_from_db()
    running.refresh_from_db()
    typed.refresh_from_db()
    assert controller.epoch == epoch + 1
    assert controller.lease_expires_at is not None
    assert controller.lease_expires_at <= timezone.now()
    assert (session.state, session.failure_code, session.ended_by) == (
        "EXPIRED",
        "REVOKED",
        "admin:a",
    )
    assert (typed.failure_code, typed.body, typed.input_seq, running.input_seq, running.state) == (
        "REVOKED",
        None,
        None,
        0,
        "RUNNING",
    )
    event = AuditEvent.objects.get(action="controller_credential.revoke")
    assert event.detail == {"key_id": credential.key_id, "closed": True, "cancelled": 2}


def test_revoking_an_unused_credential_leaves_the_connection_alone(controller: Controller) -> None:
    spare, _ = controller_credential_create(controller=controller)
    used = _connected(controller)
    session = _start(controller)
    controller_credential_revoke(credential=spare, actor="x")
    check_standing(Lease(controller.id, controller.epoch, used.id))
    session.refresh_from_db()
    assert session.state == "PENDING"


def test_an_expired_credential_stands_no_longer(controller: Controller) -> None:
    credential = _connected(controller)
    check_standing(Lease(controller.id, controller.epoch, credential.id))
    with pytest.raises(Fenced):
        check_standing(Lease(controller.id, controller.epoch - 1, credential.id))
    ControllerCredential.objects.update(expires_at=timezone.now())
    with pytest.raises(Revoked):
        check_standing(Lease(controller.id, controller.epoch, credential.id))
    with pytest.raises(Revoked):
        greeting.hello(controller.id, make_hello(), credential.id)


def test_a_revoked_controller_is_out_with_all_its_credentials(controller: Controller) -> None:
    credential = _connected(controller)
    controller_revoke(controller=controller, actor="x")
    with pytest.raises(Revoked):
        check_standing(Lease(controller.id, controller.epoch, credential.id))
    assert not ControllerCredential.objects.filter(revoked_at__isnull=True).exists()


def test_sessions_of_a_revoked_host_keep_no_place_and_take_no_call(controller: Controller) -> None:
    _connected(controller)
    never_sent, sent, running = (
        _start(controller),
        make_session(controller, SessionState.SENT),
        make_session(controller),
    )
    ended, elsewhere = (
        make_session(controller, SessionState.EXITED),
        make_session(make_controller("other")),
    )
    controller_revoke(controller=controller, actor="x")
    states = [
        CommandSession.objects.get(id=session.id).state
        for session in (never_sent, sent, running, ended, elsewhere)
    ]
    assert states == ["EXPIRED", "LOST", "LOST", "EXITED", "RUNNING"]
    assert "its host was revoked" in CommandSession.objects.get(id=running.id).notes[-1]
    with pytest.raises(SessionEnded) as told:
        send_input(controller.project_id, running.id, None, Typing(data=b"x"), None)
    assert not told.value.retryable


def test_revoking_a_token_drops_its_unsent_commands_without_number_gaps(
    controller: Controller,
) -> None:
    credential = _connected(controller)
    token, _ = api_token_create(project=controller.project, name="agent")
    other, _ = api_token_create(project=controller.project, name="other")
    mine, theirs = _start(controller, token.id), _start(controller, other.id)
    tail, middle = make_session(controller), make_session(controller)
    first, last = _input(tail, other.id), _input(tail, token.id)
    early, late = _input(middle, token.id), _input(middle, other.id)
    api_token_revoke(token=token, actor="x")
    assert [CommandSession.objects.get(id=s.id).state for s in (mine, theirs)] == [
        "EXPIRED",
        "PENDING",
    ]
    assert [
        ControllerCommand.objects.get(id=c.id).failure_code for c in (first, last, early, late)
    ] == ["", "REVOKED", "", ""]
    assert _input(tail, other.id).input_seq == 2
    sent, _ = take_commands(controller.id, controller.epoch)
    assert [
        (m.input_seq, m.session_id == str(tail.id)) for m in sent if isinstance(m, SendInput)
    ] == [
        (1, True),
        (1, False),
        (2, False),
        (2, True),
    ]
    assert AuditEvent.objects.get(action="api_token.revoke").detail["cancelled"] == 2
    assert credential.instance_id == "instance-1"


def test_a_users_token_is_valid_while_the_user_is_an_active_member(controller: Controller) -> None:
    user = get_user_model().objects.create_user("op", password="x")
    controller.project.members.add(user)
    token, _ = api_token_create(project=controller.project, name="agent", owner=user)
    caller = Caller(controller.project_id, "token:agent", frozenset(), token.id)
    check_caller(caller)
    controller.project.members.clear()
    with pytest.raises(Unauthenticated):
        check_caller(caller)
    user.is_superuser = True
    user.save()
    check_caller(caller)
    user.is_active = False
    user.save()
    with pytest.raises(Unauthenticated):
        check_caller(caller)
    user.delete()
    assert not ApiToken.objects.filter(id=token.id).exists()
    with pytest.raises(Unauthenticated):
        check_caller(caller)
    check_caller(Caller(controller.project_id, "system", frozenset()))


# ---- copies of a credential ----------------------------------------------------------------------


def _alarms(controller: Controller) -> int:
    controller.refresh_from_db()
    count = AuditEvent.objects.filter(action="controller.second_instance").count()
    assert (controller.alarmed_at is not None) == bool(count)
    return count


def test_a_credential_stays_bound_to_the_first_daemon_that_used_it(controller: Controller) -> None:
    credential = _connected(controller)
    with pytest.raises(SecondInstance):
        greeting.hello(
            controller.id, make_hello(instance_id="copy", hostname="evil\0"), credential.id
        )
    Controller.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    with pytest.raises(SecondInstance, match="showed it first"):
        greeting.hello(
            controller.id, make_hello(instance_id="copy", hostname="evil\0"), credential.id
        )
    assert _alarms(controller) == 2
    assert controller.alarm.startswith("evil\ufffd: this credential belongs to another daemon")
    greeting.hello(controller.id, make_hello(), credential.id)
    fresh, _ = controller_credential_create(controller=controller)
    _let_lease_run_out()
    greeting.hello(controller.id, make_hello(instance_id="reinstalled"), fresh.id)


def test_a_copy_of_a_whole_machine_is_found_when_both_have_been_there(
    controller: Controller,
) -> None:
    credential = _connected(controller)
    _let_lease_run_out()
    greeting.hello(controller.id, make_hello(boot_id="boot-2"), credential.id)
    greeting.hello(controller.id, make_hello(boot_id="boot-2"), credential.id)
    assert _alarms(controller) == 0
    with pytest.raises(SecondInstance, match="copy of another machine"):
        greeting.hello(controller.id, make_hello(boot_id="boot-1"), credential.id)
    assert _alarms(controller) == 1
    _let_lease_run_out()
    greeting.hello(controller.id, make_hello(boot_id="boot-3"), credential.id)


def _let_lease_run_out() -> None:
    Controller.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
