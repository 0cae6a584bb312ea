"""Monitors in the admin: who sees them, what they read, and that stopping one keeps its log."""

import uuid

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from projects.models import AuditEvent, Monitor
from projects.monitors import log as monitor_log
from tests.support.rows import make_controller

BAD = "/var/log/<img src=x>\u202e.log"


def make_monitor(**fields: object) -> Monitor:
    controller = make_controller(f"host-{uuid.uuid4().hex[:8]}")
    values = {
        "session_id": uuid.uuid4(),
        "session_type": "file",
        "log_file": BAD,
        "metadata": {"host": BAD},
        "file_identity": "1:2",
    }
    return Monitor.objects.create(
        project_id=controller.project_id, controller=controller, **{**values, **fields}
    )


@pytest.mark.django_db
def test_what_others_chose_stays_text_and_what_was_read_is_shown(admin_client: Client) -> None:
    monitor = make_monitor(next_offset=18)
    monitor_log.append(monitor.id, 0, b"<script>\x1b[31m line")
    for url in ("/admin/projects/monitor/", f"/admin/projects/monitor/{monitor.id}/change/"):
        content = admin_client.get(url).content.decode()
        assert "<img src=x" not in content
        assert "\u202e" not in content
    assert "&lt;script&gt;\\x1b[31m line" in content
    assert (
        AuditEvent.objects.filter(action="monitor.view", session_id=monitor.session_id).count() == 1
    )
    found = admin_client.get(f"/admin/projects/monitor/?q={monitor.session_id}").content.decode()
    assert "1 monitor" in found


@pytest.mark.django_db
def test_staff_see_own_projects_monitors_and_content_only_if_permitted(client: Client) -> None:
    monitor, other = (
        make_monitor(log_file="/mine.log", next_offset=6),
        make_monitor(log_file="/theirs.log"),
    )
    monitor_log.append(monitor.id, 0, b"secret")
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_monitor"))
    monitor.project.members.add(user)
    client.force_login(user)
    content = client.get("/admin/projects/monitor/").content.decode()
    assert "/mine.log" in content
    assert "/theirs.log" not in content
    assert client.get(f"/admin/projects/monitor/{other.id}/change/").status_code == 302
    assert (
        "secret" not in client.get(f"/admin/projects/monitor/{monitor.id}/change/").content.decode()
    )
    assert not AuditEvent.objects.filter(action="monitor.view").exists()
    client.post("/admin/projects/monitor/", {"action": "stop", "_selected_action": [monitor.id]})
    monitor.refresh_from_db()
    assert monitor.status == "active"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("rights", "method", "query"),
    [
        (["view_transcript"], "get", ""),
        (["view_transcript", "view_monitor"], "post", ""),
        (["view_transcript", "view_monitor"], "get", "?_to_field=log_file"),
    ],
)
def test_a_refused_page_of_a_monitor_leaves_no_audit_row(
    client: Client, rights: list[str], method: str, query: str
) -> None:
    monitor = make_monitor()
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    monitor.project.members.add(user)
    client.force_login(user)
    url = f"/admin/projects/monitor/{monitor.id}/change/{query}"
    assert getattr(client, method)(url).status_code in (400, 403)
    assert not AuditEvent.objects.filter(action="monitor.view").exists()


@pytest.mark.django_db(transaction=True)
def test_a_monitor_is_stopped_and_its_log_stays(admin_client: Client) -> None:
    monitor = make_monitor()
    admin_client.post(
        "/admin/projects/monitor/", {"action": "stop", "_selected_action": [monitor.id]}
    )
    monitor.refresh_from_db()
    assert (monitor.status, monitor.stopped_by, monitor.log_deleted) == (
        "stopped",
        "admin:admin",
        None,
    )
    assert AuditEvent.objects.filter(action="monitor.stop", actor="admin:admin").exists()
