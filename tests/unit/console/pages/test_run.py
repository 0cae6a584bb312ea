"""The pages of runs: who may see and do what, that foreign text stays text, and the buttons."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agent import services
from agent.models import AgentRun, AgentStep
from projects.models import Approval, AuditEvent, Controller, Project
from tests.support.rows import make_approval, make_controller, make_session, of_run

pytestmark = pytest.mark.django_db(transaction=True)
XSS = "<script>alert(1)</script>"


@pytest.fixture
def project() -> Project:
    project = Project.objects.create(name="acme")
    Controller.objects.create(
        project=project, name="host", lease_expires_at=timezone.now() + timedelta(hours=1)
    )
    return project


def run_of(project: Project, **changes: Any) -> AgentRun:
    run = services.run_submit(project=project, task="tidy up", actor="test", model="scripted:demo")
    AgentRun.objects.filter(id=run.id).update(**changes)
    run.refresh_from_db()
    return run


def asked(run: AgentRun, command: str = "rm -rf x") -> Approval:
    call = {"id": "1", "name": "execute_command", "arguments": {"command": command}}
    AgentStep.objects.create(run=run, number=1, text="I tidy up", calls=[call])
    AgentRun.objects.filter(id=run.id).update(state=AgentRun.State.WAITING)
    return make_approval(
        run.project, call["name"], call["arguments"], risk="destructive", **of_run(run.pk)
    )


def staff(project: Project | None, *permissions: str) -> Client:
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(codename__in=("view_agentrun", *permissions))
    )
    if project is not None:
        project.members.add(user)
    client = Client()
    client.force_login(user)
    return client


def url(name: str, *arguments: object) -> str:
    return reverse(f"console:{name}", args=arguments)


def test_a_run_is_started_from_its_form(admin_client: Client, project: Project) -> None:
    assert b"Start a run" in admin_client.get(url("runs")).content
    made = admin_client.post(
        url("run_new"), {"project": project.pk, "task": "look around", "model": "scripted:demo"}
    )
    run = AgentRun.objects.get()
    assert made["Location"] == url("run", run.pk)
    assert (run.task, run.submitted_by, run.state) == ("look around", "admin:admin", "queued")


def test_a_result_about_an_id_of_another_project_shows_nothing_of_it(
    admin_client: Client, project: Project
) -> None:
    session = make_session(make_controller("elsewhere"), command="command-of-theirs")
    run = run_of(project)
    result = {"id": "1", "body": {"session_id": str(session.pk), "status": "active"}}
    AgentStep.objects.create(run=run, number=1, text="I monitor", results=[result])
    assert "command-of-theirs" not in admin_client.get(url("run", run.pk)).text


def test_the_page_shows_what_was_said_and_done_as_text_only(
    admin_client: Client, project: Project
) -> None:
    run = run_of(project, task=XSS)
    asked(run, command=f"echo {XSS}\u202e")
    for page in (url("runs"), url("run", run.pk), url("run_live", run.pk)):
        content = admin_client.get(page).content.decode()
        assert XSS not in content
        assert "\u202e" not in content
    assert "I tidy up" in content
    assert "&lt;script&gt;" in content


def test_an_approval_is_answered_on_the_page_and_the_run_goes_on(
    admin_client: Client, project: Project
) -> None:
    run = run_of(project)
    approval = asked(run)
    assert b"Approve" in admin_client.get(url("run_live", run.pk)).content
    answer = {"answer": "deny", "reason": "not today", "run": str(run.pk)}
    back = admin_client.post(f"/approvals/{approval.pk}/answer/", answer)
    assert back["Location"] == url("run", run.pk)
    approval.refresh_from_db()
    run.refresh_from_db()
    assert (approval.answer, approval.reason, approval.answered_by) == (
        "denied",
        "not today",
        "admin:admin",
    )
    assert run.state == "queued"


def test_the_live_part_is_sent_only_when_it_has_changed(
    admin_client: Client, project: Project
) -> None:
    run = run_of(project)
    have = admin_client.get(url("run_live", run.pk)).context["version"]
    assert admin_client.get(url("run_live", run.pk), {"have": have}).status_code == 204
    asked(run)
    assert admin_client.get(url("run_live", run.pk), {"have": have}).status_code == 200


def test_who_reads_a_run_without_its_page_leaves_one_audit_row(
    admin_client: Client, project: Project
) -> None:
    run = run_of(project)
    for _ in range(3):
        admin_client.get(url("run_live", run.pk))
    rows = AuditEvent.objects.filter(action="agent_run.view", detail__run=str(run.pk))
    assert rows.count() == 1
    admin_client.get(url("run", run.pk))
    admin_client.get(url("run_live", run.pk))
    assert rows.count() == 2


def test_a_run_that_is_over_goes_on_with_what_the_model_is_told(
    admin_client: Client, project: Project
) -> None:
    run = run_of(project)
    for _ in range(2):
        refused = admin_client.post(url("run_resume", run.pk), follow=True)
        assert ("RUN_ACTIVE" in refused.content.decode()) == (run.state == "queued")
        AgentRun.objects.filter(id=run.id).update(
            state="failed", stop_reason="max_steps", ended_at=timezone.now()
        )
        run.refresh_from_db()
    assert run.state == "failed"
    admin_client.post(url("run_resume", run.pk), {"said": "take your time"})
    run.refresh_from_db()
    assert (run.state, run.stop_reason, run.ended_at, run.said_next) == (
        "queued",
        "",
        None,
        ["take your time"],
    )


def test_limits_and_controllers_are_the_runs_own(admin_client: Client, project: Project) -> None:
    form = {
        "project": project.pk,
        "task": "x",
        "controllers": "host",
        "max_steps": "7",
        "max_cost_cents": "0",
    }
    admin_client.post(url("run_new"), form)
    run = AgentRun.objects.get()
    assert (run.controllers, run.max_steps, run.max_cost_cents, run.max_tokens) == (
        ["host"],
        7,
        0,
        2_000_000,
    )
    for wrong in ({"controllers": "nix"}, {"max_steps": "0"}, {"max_run_seconds": "-1"}):
        assert b"INVALID_ARGUMENT" in admin_client.post(url("run_new"), form | wrong).content


def test_a_run_without_a_host_that_is_there_is_refused(
    admin_client: Client, project: Project
) -> None:
    Controller.objects.update(lease_expires_at=timezone.now() - timedelta(hours=1))
    assert (
        b"CONTROLLER_OFFLINE"
        in admin_client.post(url("run_new"), {"project": project.pk, "task": "x"}).content
    )
    Controller.objects.update(revoked_at=timezone.now())
    assert (
        b"NO_CONTROLLER"
        in admin_client.post(url("run_new"), {"project": project.pk, "task": "x"}).content
    )
    assert not AgentRun.objects.exists()


def test_a_run_whose_worker_is_gone_is_stopped_at_once(
    admin_client: Client, project: Project
) -> None:
    run = run_of(
        project,
        state="running",
        lease=uuid4(),
        lease_expires_at=timezone.now() - timedelta(seconds=1),
        is_reserved=True,
    )
    admin_client.post(url("run_stop", run.pk))
    run.refresh_from_db()
    assert run.state == "stopped"


def test_a_run_nobody_works_on_is_stopped_at_once(admin_client: Client, project: Project) -> None:
    run = run_of(project)
    assert admin_client.get(url("run_stop", run.pk)).status_code == 405
    admin_client.post(url("run_stop", run.pk))
    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("stopped", "stopped")


def test_the_question_on_the_page_names_its_files_and_notices(
    admin_client: Client, project: Project
) -> None:
    run = run_of(project)
    approval = asked(run, command="perl -MDeploy ./tool")
    Approval.objects.filter(pk=approval.pk).update(files=[["/a/tool", "5e"]])
    question = admin_client.get(url("run_live", run.pk)).text.partition('name="reason"')[0]
    assert "may run /a/tool (SHA-256 5e)" in question
    assert "cannot be told from the line" in question


def test_whoever_may_only_look_sees_no_transcript_and_has_no_buttons(project: Project) -> None:
    run = run_of(project)
    approval = asked(run)
    client = staff(project)
    content = client.get(url("run", run.pk)).content
    assert b"I tidy up" not in content
    assert b"Approve" not in content
    for page in (url("run_stop", run.pk), f"/approvals/{approval.pk}/answer/", url("run_new")):
        assert client.post(page, {"answer": "approve"}).status_code == 403
    approval.refresh_from_db()
    assert approval.answer == "pending"


def test_runs_of_other_projects_do_not_exist(project: Project) -> None:
    run = run_of(project)
    approval = asked(run)
    rights = ("control_run", "view_run_transcript", "view_approval", "answer_approval")
    client = staff(None, *rights)
    for page in (
        url("run_live", run.pk),
        url("run_stop", run.pk),
        f"/approvals/{approval.pk}/answer/",
    ):
        assert client.post(page, {"answer": "approve"}).status_code == 404


def test_a_run_can_only_be_stricter_than_its_project(
    admin_client: Client, project: Project
) -> None:
    refused = admin_client.post(
        url("run_new"), {"project": project.pk, "task": "x", "approvals": "auto"}
    )
    assert b"can only be stricter" in refused.content
    assert not AgentRun.objects.exists()


def test_the_counts_of_what_waits_are_shown_beside_a_run(
    project: Project,
) -> None:
    """Only a page with a connection of its own, which says that it is live, shows them itself."""
    page = staff(project, "view_agentrun").get(f"/runs/{run_of(project).pk}/").text
    assert "data-live" not in page
    assert 'id="waiting"' in page
