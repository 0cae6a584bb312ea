"""A code makes one host a controller, once. The next owner of a name sees nothing of the last."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models import F
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects.accounts.credentials import (
    active_credentials,
    controller_create,
    controller_credential_create,
)
from projects.accounts.errors import CredentialLimitReached, EnrolmentRefused
from projects.enrolment.codes import (
    NOT_USED_UP,
    controller_credential_rotate,
    enrolment_code_create,
    enrolment_key_create,
    host_enrol,
)
from projects.enrolment.revocation import controller_credential_revoke, controller_revoke
from projects.errors.access import Unauthenticated
from projects.errors.calls import InvalidArgument
from projects.errors.hosts import ControllerNotFound
from projects.link.inbound import hello as greeting
from projects.link.inbound.refusals import AwaitsApproval, Revoked
from projects.models import AuditEvent, Controller, ControllerCredential, EnrolmentCode, Project
from projects.sessions import selectors
from projects.storage.access import in_database
from tests.support.rows import make_hello, make_session, make_summary

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="acme")


def test_a_code_enrols_one_host_and_is_never_stored_in_the_database(project: Project) -> None:
    row, code = enrolment_code_create(project=project, name="web-1", actor="admin:a")
    assert row.expires_at is not None
    assert timedelta(minutes=14) < row.expires_at - timezone.now() <= timedelta(minutes=15)
    enrolled = host_enrol(code=code, peer="192.0.2.7")
    assert (enrolled.project, enrolled.controller) == ("acme", "web-1")
    (controller,) = Controller.objects.all()
    assert [credential.key_id for credential in active_credentials(controller.id)] == [
        enrolled.credential.split("_")[1]
    ]
    assert list(EnrolmentCode.objects.values_list("used_from", flat=True)) == ["192.0.2.7"]
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions == [
        "enrolment_code.create",
        "controller.create",
        "controller_credential.create",
        "controller.enrol",
    ]
    stored = str(
        [
            list(model.objects.values())
            for model in (EnrolmentCode, AuditEvent, ControllerCredential)
        ]
    )
    assert code[-43:] not in stored
    assert enrolled.credential[-43:] not in stored


def test_where_operators_decide_a_host_is_served_once_one_let_it_in(
    project: Project, settings: Any
) -> None:
    settings.ENROLMENT_APPROVAL = True
    enrolled = host_enrol(code=enrolment_code_create(project=project, name="web-1")[1])
    assert enrolled.awaits_approval
    controller = Controller.objects.get()
    with pytest.raises(AwaitsApproval):
        greeting.hello(controller.id, make_hello())
    assert controller_credential_rotate(credential=controller.credentials.get()).awaits_approval
    said = StringIO()
    for _ in range(2):
        call_command("approve", "acme/web-1", stdout=said)
    assert said.getvalue().split("\n")[:2] == ["approved", "it was approved already"]
    assert greeting.hello(controller.id, make_hello())[0].epoch == 1
    assert (
        AuditEvent.objects.filter(action="controller.approve", controller_id=controller.id).count()
        == 1
    )
    # Who takes its place is somebody else.
    assert host_enrol(
        code=enrolment_code_create(project=project, name="web-1", is_replacement=True)[1]
    ).awaits_approval
    with pytest.raises(AwaitsApproval):
        greeting.hello(controller.id, make_hello(instance_id="another"))
    with pytest.raises(CommandError):
        call_command("approve", "acme/web-2")


def _spoilt(code: str) -> str:
    return code[:-1] + ("A" if code[-1] != "A" else "B")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _row, _code: "",
        lambda _row, code: _spoilt(code),
        lambda _row, code: code.replace("enr_", "ctl_"),
        lambda _row, code: host_enrol(code=code) and code,
        lambda row, code: (
            EnrolmentCode.objects.filter(id=row.id).update(expires_at=timezone.now()) and code
        ),
        lambda row, code: (
            EnrolmentCode.objects.filter(id=row.id).update(revoked_at=timezone.now()) and code
        ),
        lambda row, code: controller_create(project=row.project, name="web-1") and code,
    ],
)
def test_any_other_code_is_refused_and_makes_nothing(
    project: Project, spoil: Callable[[EnrolmentCode, str], Any]
) -> None:
    code = spoil(*enrolment_code_create(project=project, name="web-1"))
    before = Controller.objects.count(), ControllerCredential.objects.count()
    with pytest.raises(EnrolmentRefused):
        host_enrol(code=code)
    assert (Controller.objects.count(), ControllerCredential.objects.count()) == before


def test_of_twenty_hosts_with_the_same_code_one_is_enrolled(project: Project) -> None:
    _, code = enrolment_code_create(project=project, name="web-1")

    def enrol(number: int) -> bool:
        try:
            host_enrol(code=code, peer=str(number))
        except EnrolmentRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(20) as threads:
        assert sorted(threads.map(enrol, range(20))) == [False] * 19 + [True]
    assert (Controller.objects.count(), ControllerCredential.objects.count()) == (1, 1)


@pytest.mark.parametrize("is_key", [False, True])
def test_of_ten_codes_that_give_one_name_at_once_one_does(project: Project, is_key: bool) -> None:
    def make() -> str:
        if is_key:
            return enrolment_key_create(project=project, hosts=1, hours=1)[1]
        return enrolment_code_create(project=project, name="web-1")[1]

    codes = [make() for _ in range(10)]
    together = threading.Barrier(10)

    def enrol(code: str) -> bool:
        together.wait()
        try:
            host_enrol(code=code, name="web-1")
        except (EnrolmentRefused, InvalidArgument):
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(10) as threads:
        assert sorted(threads.map(enrol, codes)) == [False] * 9 + [True]
    assert EnrolmentCode.objects.filter(NOT_USED_UP).count() == 9


def test_a_code_is_for_a_free_name_or_else_for_a_replacement(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    old, _ = controller_credential_create(controller=controller)
    with pytest.raises(ValueError, match="already has a controller"):
        enrolment_code_create(project=project, name="web-1")
    with pytest.raises(ValueError, match="has no controller"):
        enrolment_code_create(project=project, name="web-2", is_replacement=True)
    with pytest.raises(ValidationError):
        enrolment_code_create(project=project, name="no name <b>")
    _, code = enrolment_code_create(project=project, name="web-1", is_replacement=True)
    assert [row.id for row in active_credentials(controller.id)] == [old.id]
    enrolled = host_enrol(code=code)
    assert [row.key_id for row in active_credentials(controller.id)] == [
        enrolled.credential.split("_")[1]
    ]


def test_the_command_prints_a_code_or_says_what_is_wrong(project: Project) -> None:
    out = StringIO()
    call_command("create_enrolment_code", "acme", "web-1", stdout=out)
    assert host_enrol(code=out.getvalue().strip()).controller == "web-1"
    for arguments, words in (
        (("nope", "web-2"), "no project"),
        (("acme", "web-1"), "--replace"),
        (("acme", "a b"), "valid"),
    ):
        with pytest.raises(CommandError, match=words):
            call_command("create_enrolment_code", *arguments)


def test_rotation_keeps_the_daemon_and_expires_the_old_credential(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    old, _ = controller_credential_create(controller=controller, instance_id="one")
    rotated = controller_credential_rotate(credential=old)
    first, second = active_credentials(controller.id)
    assert (first.id, second.key_id, second.instance_id, second.expires_at) == (
        old.id,
        rotated.credential.split("_")[1],
        "one",
        None,
    )
    assert first.expires_at is not None
    assert first.expires_at <= timezone.now() + ControllerCredential.OVERLAP
    Controller.objects.update(connected_credential_id=old.id)
    with pytest.raises(CredentialLimitReached):
        controller_credential_rotate(credential=second)
    Controller.objects.update(connected_credential_id=second.id)
    again = controller_credential_rotate(credential=second)
    assert [row.key_id for row in active_credentials(controller.id)] == [
        second.key_id,
        again.credential.split("_")[1],
    ]


def test_a_credential_that_is_over_is_not_replaced(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    shown, _ = controller_credential_create(controller=controller, instance_id="one")
    controller_credential_revoke(credential=shown, actor="operator")
    with pytest.raises(Unauthenticated):
        controller_credential_rotate(credential=shown)
    old, _ = controller_credential_create(
        controller=controller, expires_at=timezone.now() - timedelta(minutes=1)
    )
    with pytest.raises(Unauthenticated):
        controller_credential_rotate(credential=old)
    assert active_credentials(controller.id) == []


def test_a_code_for_a_revoked_host_does_not_replace_the_next_of_its_name(project: Project) -> None:
    host_enrol(code=enrolment_code_create(project=project, name="web-1")[1])
    _, code = enrolment_code_create(project=project, name="web-1", is_replacement=True)
    controller_revoke(controller=Controller.objects.get(), actor="operator")
    host_enrol(code=enrolment_code_create(project=project, name="web-1")[1])
    with pytest.raises(EnrolmentRefused):
        host_enrol(code=code)
    _, code = enrolment_code_create(project=project, name="web-1", is_replacement=True)
    assert host_enrol(code=code).controller == "web-1"


def _age(controller: Controller) -> None:
    """Let two minutes go by for the credentials of a controller."""
    rows = ControllerCredential.objects.filter(controller=controller)
    rows.update(created_at=F("created_at") - timedelta(minutes=2))


def test_a_rotation_whose_answer_was_lost_can_be_done_again(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    old, _ = controller_credential_create(controller=controller, instance_id="one")
    controller_credential_rotate(credential=old)
    # For now its answer may still be on the way.
    with pytest.raises(CredentialLimitReached):
        controller_credential_rotate(credential=old)
    _age(controller)
    old.refresh_from_db()
    again = controller_credential_rotate(credential=old).credential.split("_")[1]
    assert [row.key_id for row in active_credentials(controller.id)] == [old.key_id, again]
    # One that the host has used is the host's.
    _age(controller)
    ControllerCredential.objects.filter(key_id=again).update(last_used_at=timezone.now())
    old.refresh_from_db()
    with pytest.raises(CredentialLimitReached):
        controller_credential_rotate(credential=old)


def test_a_rotation_spares_a_credential_that_is_carried_by_hand(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    old, _ = controller_credential_create(controller=controller, instance_id="one")
    controller_credential_create(controller=controller)
    _age(controller)
    old.refresh_from_db()
    with pytest.raises(CredentialLimitReached):
        controller_credential_rotate(credential=old)


def test_a_revoked_host_is_told_with_what_still_runs_there(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    session = make_session(controller, pid=4711, command="sleep \x1b[31m1000")
    make_session(controller, SessionState.EXITED)
    out = StringIO()
    call_command("revoke", "acme/web-1", stdout=out)
    assert out.getvalue().startswith("These sessions may continue. ")
    assert str(session.id) in out.getvalue()
    assert "pid 4711" in out.getvalue()
    assert "\x1b" not in out.getvalue()


def test_a_reused_controller_name_gives_no_access_to_the_old_sessions(project: Project) -> None:
    old = controller_create(project=project, name="web-1")
    _, old_text = controller_credential_create(controller=old)
    session = make_session(old)
    call_command("revoke", "acme/web-1", stdout=StringIO())
    controller_revoke(controller=old, actor="operator")
    _, code = enrolment_code_create(project=project, name="web-1")
    host_enrol(code=code)
    new = selectors.controller_for(project.id, "web-1")
    assert new.id != old.id
    with pytest.raises(ControllerNotFound):
        selectors.controller_for(project.id, str(old.id))
    # The newcomer knows the old one's session by its id, and gets nothing of it.
    welcome, missing = greeting.hello(new.id, make_hello(make_summary(session)))
    assert [(d.action, d.expected) for d in welcome.sessions] == [("terminate", [])]
    assert missing.lost == []
    session.refresh_from_db()
    assert (session.state, session.controller_id) == ("LOST", old.id)
    with pytest.raises(Revoked):
        greeting.hello(old.id, make_hello())
    assert old_text
    assert AuditEvent.objects.filter(action="controller.revoke").count() == 1


async def test_a_revoked_controllers_credential_opens_nothing() -> None:
    from projects.accounts.authentication import authenticate_controller

    def make() -> str:
        controller = controller_create(project=Project.objects.create(name="p"), name="web-1")
        text = controller_credential_create(controller=controller)[1]
        controller_revoke(controller=controller, actor="x")
        return text

    with pytest.raises(Unauthenticated):
        await authenticate_controller(f"Bearer {await in_database(make)}")
