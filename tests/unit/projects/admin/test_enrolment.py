"""Hosts in the admin: codes, credentials and controllers, and their approvals and alarms."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from projects.accounts.credentials import (
    active_credentials,
    controller_create,
    controller_credential_create,
)
from projects.accounts.errors import EnrolmentRefused
from projects.enrolment.codes import enrolment_code_create, enrolment_key_create, host_enrol
from projects.models import AuditEvent, Controller, EnrolmentCode, Project
from tests.unit.projects.admin.test_tokens import staff

pytestmark = pytest.mark.django_db

CODES, CREDENTIALS, CONTROLLERS = (
    f"/admin/projects/{name}/" for name in ("enrolmentcode", "controllercredential", "controller")
)


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="acme")


def test_a_code_is_shown_once_and_enrols_a_host(project: Project) -> None:
    client = staff("view_enrolmentcode", "manage_controller", project=project)
    form = {"project": str(project.pk), "controller_name": "web-1"}
    answer = client.post(f"{CODES}add/", form)
    (code,) = re.findall(r"enr_[0-9a-f]{16}_[\w-]{43}", answer.content.decode())
    assert "no-store" in answer["Cache-Control"]
    assert code[-43:] not in client.get(CODES).content.decode()
    assert host_enrol(code=code).controller == "web-1"
    assert EnrolmentCode.objects.get().created_by == "admin:op"
    assert b"already has a controller" in client.post(f"{CODES}add/", form).content
    assert b"valid" in client.post(f"{CODES}add/", {**form, "controller_name": "no name"}).content
    assert EnrolmentCode.objects.count() == 1
    assert (
        client.post(
            f"{CODES}add/", {**form, "project": str(Project.objects.create(name="other").pk)}
        ).status_code
        == 200
    )
    assert EnrolmentCode.objects.count() == 1


@pytest.mark.parametrize("name", ["", "a" * 65])
def test_the_page_of_a_new_code_asks_for_a_name_that_can_be_stored(
    admin_client: Client, project: Project, name: str
) -> None:
    form = {"project": str(project.pk), "controller_name": name}
    answer = admin_client.post(f"{CODES}add/", form)
    assert answer.status_code == 200
    assert "controller_name" in answer.context["adminform"].form.errors
    assert not EnrolmentCode.objects.exists()


def test_without_the_permission_nobody_is_enrolled_or_put_out(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    credential, _ = controller_credential_create(controller=controller)
    client = staff(
        "view_enrolmentcode", "view_controllercredential", "view_controller", project=project
    )
    assert client.get(f"{CODES}add/").status_code == 403
    for place, row in ((CREDENTIALS, credential.pk), (CONTROLLERS, controller.pk)):
        client.post(place, {"action": "revoke", "_selected_action": str(row), "confirmed": "yes"})
    assert len(active_credentials(controller.id)) == 1
    assert not Controller.objects.filter(revoked_at__isnull=False).exists()


def test_a_code_is_withdrawn(admin_client: Client, project: Project) -> None:
    row, code = enrolment_code_create(project=project, name="web-1")
    admin_client.post(CODES, {"action": "withdraw", "_selected_action": str(row.pk)})
    with pytest.raises(EnrolmentRefused):
        host_enrol(code=code)
    assert (
        AuditEvent.objects.filter(action="enrolment_code.withdraw", actor="admin:admin").count()
        == 1
    )


def test_a_key_that_has_served_some_hosts_is_withdrawn(
    admin_client: Client, project: Project
) -> None:
    row, key = enrolment_key_create(project=project, hosts=3, hours=1)
    host_enrol(code=key, name="web-1")
    admin_client.post(CODES, {"action": "withdraw", "_selected_action": str(row.pk)})
    with pytest.raises(EnrolmentRefused):
        host_enrol(code=key, name="web-2")
    assert Controller.objects.count() == 1


def test_credentials_and_controllers_are_revoked_after_a_question(
    admin_client: Client, project: Project
) -> None:
    controller = controller_create(project=project, name="web-1")
    first, _ = controller_credential_create(controller=controller)
    controller_credential_create(controller=controller)
    assert "nobody yet" in admin_client.get(f"{CREDENTIALS}{first.pk}/change/").content.decode()
    chosen = {"action": "revoke", "_selected_action": str(first.pk)}
    assert b"Yes, revoke" in admin_client.post(CREDENTIALS, chosen).content
    assert len(active_credentials(controller.id)) == 2
    admin_client.post(CREDENTIALS, {**chosen, "confirmed": "yes"})
    assert len(active_credentials(controller.id)) == 1
    chosen = {"action": "revoke", "_selected_action": str(controller.pk)}
    assert b"other hosts may take their names" in admin_client.post(CONTROLLERS, chosen).content
    admin_client.post(CONTROLLERS, {**chosen, "confirmed": "yes"})
    assert active_credentials(controller.id) == []


def test_a_host_that_waits_is_let_in_by_whoever_may_and_is_of_its_project(project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    Controller.objects.update(awaits_approval_since=timezone.now())
    chosen = {"action": "approve", "_selected_action": str(controller.pk)}
    staff("view_controller", project=project, name="looks").post(CONTROLLERS, chosen)
    staff(
        "view_controller",
        "manage_controller",
        project=Project.objects.create(name="other"),
        name="other",
    ).post(CONTROLLERS, chosen)
    assert Controller.objects.get().awaits_approval_since is not None
    answer = staff("view_controller", "manage_controller", project=project).post(
        CONTROLLERS, chosen, follow=True
    )
    assert b"Approved: web-1 (acme)" in answer.content
    assert Controller.objects.get().awaits_approval_since is None
    assert AuditEvent.objects.get(action="controller.approve").actor == "admin:op"


def test_an_alarm_is_seen_and_dismissed(admin_client: Client, project: Project) -> None:
    controller = controller_create(project=project, name="web-1")
    Controller.objects.update(
        alarmed_at=timezone.now(), alarm="evil<b>\u202e: this credential belongs to another daemon"
    )
    assert '<td class="field-alarmed">ALARM</td>' in admin_client.get(CONTROLLERS).content.decode()
    page = admin_client.get(f"{CONTROLLERS}{controller.pk}/change/").content.decode()
    assert "evil&lt;b&gt;\\u202e: this credential belongs to another daemon" in page
    admin_client.post(CONTROLLERS, {"action": "dismiss", "_selected_action": str(controller.pk)})
    assert Controller.objects.get().alarmed_at is None
    assert "evil" in AuditEvent.objects.get(action="controller.dismiss_alarm").detail["alarm"]
