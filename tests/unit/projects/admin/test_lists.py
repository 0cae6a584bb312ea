"""Controllers, projects, tokens and the audit log in the admin."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from projects.accounts.credentials import api_token_create
from projects.audit.log import audit
from projects.models import AuditEvent, CommandSession, Controller, Project

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="acme")


def test_a_controller_is_online_while_its_lease_runs(
    admin_client: Client, project: Project
) -> None:
    now = timezone.now()
    Controller.objects.create(
        project=project,
        name="here",
        lease_expires_at=now + timedelta(seconds=20),
        platform="Linux-6",
        hostname="h1",
    )
    Controller.objects.create(
        project=project, name="gone", lease_expires_at=now - timedelta(hours=2)
    )
    Controller.objects.create(project=project, name="fresh")
    content = admin_client.get("/admin/projects/controller/").content.decode()
    assert "for another" in content
    assert "expired 2:00:00 ago" in content
    assert "never connected" in content
    online = admin_client.get("/admin/projects/controller/?presence=online").content.decode()
    assert "here" in online
    assert "expired" not in online
    offline = admin_client.get("/admin/projects/controller/?presence=offline").content.decode()
    assert "never connected" in offline
    assert "for another" not in offline


def test_what_a_host_says_about_itself_stays_text(admin_client: Client, project: Project) -> None:
    bad = "<img src=x onerror=alert(1)>\u202e"
    controller = Controller.objects.create(
        project=project,
        name="h",
        hostname=bad,
        platform=bad,
        client_version="<b>",
        capabilities=[bad],
    )
    for url in (
        "/admin/projects/controller/",
        f"/admin/projects/controller/{controller.pk}/change/",
    ):
        content = admin_client.get(url).content.decode()
        assert "<img src=x" not in content
        assert "\u202e" not in content


def test_a_project_shows_its_figures_and_its_limit_can_be_changed(
    admin_client: Client, project: Project
) -> None:
    controller = Controller.objects.create(project=project, name="h")
    CommandSession.objects.create(
        project=project, controller=controller, command="a", state="RUNNING"
    )
    CommandSession.objects.create(
        project=project, controller=controller, command="b", state="EXITED"
    )
    content = admin_client.get("/admin/projects/project/").content.decode()
    assert '<td class="field-sessions_active">1</td>' in content
    change = {
        "name": "acme",
        "max_interactive_sessions": "5",
        "max_pause_minutes": "30",
        "approvals": "auto",
    }
    assert (
        admin_client.post(f"/admin/projects/project/{project.pk}/change/", change).status_code
        == 302
    )
    project.refresh_from_db()
    assert project.max_interactive_sessions == 5


def test_a_token_shows_its_scopes_and_never_its_digest(
    admin_client: Client, project: Project
) -> None:
    row, token = api_token_create(project=project, name="agent")
    for url in ("/admin/projects/apitoken/", f"/admin/projects/apitoken/{row.pk}/change/"):
        content = admin_client.get(url).content.decode()
        assert "session:start" in content
        assert row.digest not in content
        assert token[-43:] not in content


def test_the_audit_log_is_read_only_and_searchable(admin_client: Client, project: Project) -> None:
    audit("token:<b>", "session.start", (project.pk, None, None), {"command": "<script>\u202e"})
    event = AuditEvent.objects.get()
    listed = admin_client.get("/admin/projects/auditevent/?q=session.start").content.decode()
    assert "session.start" in listed
    shown = admin_client.get(f"/admin/projects/auditevent/{event.pk}/change/").content.decode()
    assert "<script>\u202e" not in shown
    assert "&lt;script&gt;\\u202e" in shown
    assert (
        admin_client.post(
            f"/admin/projects/auditevent/{event.pk}/delete/", {"post": "yes"}
        ).status_code
        == 403
    )
    assert (
        admin_client.post(
            f"/admin/projects/auditevent/{event.pk}/change/", {"actor": "me"}
        ).status_code
        == 403
    )


def test_staff_see_the_audit_rows_and_hosts_of_their_projects_only(
    client: Client, project: Project
) -> None:
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(
            codename__in=["view_auditevent", "view_controller", "view_project"]
        )
    )
    project.members.add(user)
    other = Project.objects.create(name="other")
    audit("mine", "a", (project.pk, None, None))
    audit("theirs", "a", (other.pk, None, None))
    Controller.objects.create(project=other, name="theirs")
    client.force_login(user)
    for place in ("auditevent", "controller", "project"):
        content = client.get(f"/admin/projects/{place}/").content.decode()
        assert "theirs" not in content.partition('id="result_list"')[2].partition("</table>")[0]
    assert "mine" in client.get("/admin/projects/auditevent/").content.decode()


def test_exporting_the_audit_log_needs_permission_and_covers_own_projects(
    client: Client, project: Project
) -> None:
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_auditevent"))
    project.members.add(user)
    audit("mine", "a", (project.pk, None, None))
    audit("theirs", "a", (Project.objects.create(name="other").pk, None, None))
    client.force_login(user)
    assert b"Export as JSON lines" not in client.get("/admin/projects/auditevent/").content
    assert client.post("/admin/projects/auditevent/export/").status_code == 403
    export = Permission.objects.get(codename="export_auditevent")
    user.user_permissions.set([export])
    assert client.post("/admin/projects/auditevent/export/").status_code == 403
    assert not AuditEvent.objects.filter(action="audit.export").exists()
    user.user_permissions.add(Permission.objects.get(codename="view_auditevent"))
    assert b"Export as JSON lines" in client.get("/admin/projects/auditevent/").content
    assert client.get("/admin/projects/auditevent/export/").status_code == 405
    # Its rows are read in threads of their own, which see what is committed only: this is about who
    # is let in.
    answer = client.post("/admin/projects/auditevent/export/")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/jsonl; charset=utf-8")
    assert [
        event.actor
        for event in AuditEvent.objects.filter(action="audit.export", project_id=project.pk)
    ] == ["admin:op"]
    assert AuditEvent.objects.filter(action="audit.export").count() == 1
