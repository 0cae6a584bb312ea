"""Session pages: who may see, read and end what, and that foreign text stays text."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import AsyncClient, Client
from django.urls import reverse

from projects.audit.log import audit
from projects.errors.base import Forbidden
from projects.models import AuditEvent, CommandSession, Controller, Project
from projects.output import log as output_log
from projects.reads import streamed
from tests.unit.console.conftest import read

pytestmark = pytest.mark.django_db(transaction=True)

LIST = "/admin/projects/commandsession/"
XSS = "</pre><script>alert(1)</script>"


@pytest.fixture
def project() -> Project:
    return Project.objects.create(name="acme")


def session_of(
    project: Project, command: str = "cat", output: bytes = b"", **fields: Any
) -> CommandSession:
    controller, _ = Controller.objects.get_or_create(project=project, name="host")
    session = CommandSession.objects.create(
        project=project,
        controller=controller,
        command=command,
        state="RUNNING",
        stdout_next_offset=len(output),
        **fields,
    )
    if output:
        output_log.append([output_log.NewChunk(session.id, "stdout", 0, 1, output)])
    return session


def staff(*permissions: str, project: Project | None = None) -> Client:
    """A client of somebody who is no superuser."""
    user = get_user_model().objects.create_user("op", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    if project is not None:
        project.members.add(user)
    client = Client(enforce_csrf_checks=False)
    client.force_login(user)
    return client


def page_of(session: CommandSession) -> str:
    return reverse("admin:projects_commandsession_change", args=[session.pk])


@pytest.mark.parametrize(
    "field", ["command", "started_by", "cwd", "terminal_detail", "ended_by", "failure_message"]
)
def test_foreign_text_is_escaped_in_every_field(
    admin_client: Client, project: Project, field: str
) -> None:
    session = session_of(project, **{field: XSS} if field != "command" else {"command": XSS})
    for url in (LIST, page_of(session), f"{LIST}?q=alert"):
        assert b"<script>alert" not in admin_client.get(url).content


def test_a_shown_transcript_is_escaped_and_viewing_it_is_recorded(
    admin_client: Client, project: Project
) -> None:
    session = session_of(
        project, output=XSS.encode() + b"\x1b[31mred\x1b[0m \x9b2J\xe2\x80\xaeevil"
    )
    content = admin_client.get(page_of(session)).content.decode()
    assert "&lt;/pre&gt;&lt;script&gt;" in content
    assert "<script>alert" not in content
    assert "red" in content
    assert "\x1b" not in content
    assert "\\u{202e}evil" in content
    assert AuditEvent.objects.get(session_id=session.pk).action == "transcript.view"


def test_a_gap_is_shown_where_the_bytes_are_missing(admin_client: Client, project: Project) -> None:
    session = session_of(project, output=b"before")
    output_log.add_gap(session.id, "stdout", 6, 106, "ring_overflow")
    output_log.append([output_log.NewChunk(session.id, "stdout", 106, 2, b"after")])
    CommandSession.objects.filter(pk=session.pk).update(stdout_next_offset=111)
    content = admin_client.get(page_of(session)).content.decode()
    assert "Bytes 6 to 106 are gone: ring_overflow" in content
    assert "before\n[… 100 bytes are lost: ring_overflow …]\nafter" in content


async def test_the_download_is_every_byte_as_an_attachment_nobody_interprets(
    project: Project,
) -> None:
    from asgiref.sync import sync_to_async

    payload = bytes(range(256)) * 4
    session = await sync_to_async(session_of)(project, output=payload)
    root = await sync_to_async(get_user_model().objects.create_superuser)("root", password="x")
    client = AsyncClient()
    await client.aforce_login(root)
    answer = await client.get(
        reverse("admin:projects_commandsession_transcript", args=[session.pk])
    )
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"] == f'attachment; filename="session-{session.pk}.log"'
    assert b"".join([part async for part in answer.streaming_content]) == payload


def test_without_the_permission_there_is_no_transcript(project: Project) -> None:
    session = session_of(project, output=b"top secret")
    client = staff("view_commandsession", project=project)
    content = client.get(page_of(session)).content
    assert b"top secret" not in content
    assert b"You may not read transcripts" in content
    assert (
        client.get(
            reverse("admin:projects_commandsession_transcript", args=[session.pk])
        ).status_code
        == 404
    )


def test_without_the_right_to_see_sessions_none_is_downloaded(project: Project) -> None:
    session = session_of(project, output=b"top secret")
    client = staff("view_transcript", project=project)
    address = reverse("admin:projects_commandsession_transcript", args=[session.pk])
    assert client.get(address).status_code == 404
    assert client.get(page_of(session)).status_code == 403
    assert not AuditEvent.objects.filter(action__startswith="transcript").exists()


@pytest.mark.parametrize("lost", ["view_commandsession", "view_transcript"])
def test_a_download_ends_with_either_right(
    project: Project, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(streamed, "CHECK_SECONDS", 0.0)
    session = session_of(project, output=b"top secret")
    client = staff("view_commandsession", "view_transcript", project=project)
    address = reverse("admin:projects_commandsession_transcript", args=[session.pk])
    assert read(client.get(address)) == "top secret"
    answer = client.get(address)
    user = get_user_model().objects.get()
    user.user_permissions.remove(Permission.objects.get(codename=lost))
    with pytest.raises(Forbidden):
        read(answer)


def test_staff_see_the_sessions_of_their_projects_only(project: Project) -> None:
    session_of(project, command="mine")
    other = session_of(Project.objects.create(name="other"), command="theirs")
    client = staff("view_commandsession", "view_transcript", "terminate_session", project=project)
    content = client.get(LIST).content
    assert b"mine" in content
    assert b"theirs" not in content
    assert client.get(page_of(other)).status_code == 302
    assert (
        client.get(reverse("admin:projects_commandsession_transcript", args=[other.pk])).status_code
        == 404
    )
    client.post(
        LIST, {"action": "terminate", "_selected_action": str(other.pk), "confirmed": "yes"}
    )
    assert not AuditEvent.objects.filter(session_id=other.pk).exists()


def test_terminating_needs_its_permission_a_confirmation_and_a_post(
    admin_client: Client, project: Project
) -> None:
    session = session_of(project)
    chosen = {"action": "terminate", "_selected_action": str(session.pk)}
    assert (
        b"Terminate selected" not in staff("view_commandsession", project=project).get(LIST).content
    )
    assert b"Yes, terminate" in admin_client.post(LIST, chosen).content
    admin_client.get(LIST, {**chosen, "confirmed": "yes"})
    assert not session.commands.exists()


def test_a_host_that_is_away_is_told_as_it_is(admin_client: Client, project: Project) -> None:
    session = session_of(project)
    answer = admin_client.post(
        LIST,
        {"action": "terminate", "_selected_action": str(session.pk), "confirmed": "yes"},
        follow=True,
    )
    assert [message.level_tag for message in answer.context["messages"]] == ["error"]
    assert str(session.pk) in str(next(iter(answer.context["messages"])))


def test_terminating_what_has_ended_says_so(admin_client: Client, project: Project) -> None:
    session = session_of(project)
    CommandSession.objects.update(state="EXITED", exit_code=3, end_reason="exited")
    answer = admin_client.post(
        LIST, {"action": "terminate", "_selected_action": str(session.pk)}, follow=True
    )
    assert b"None of the selected sessions is active" in answer.content
    assert b"exited, 3" in answer.content


def test_a_forged_post_from_another_site_is_refused(project: Project) -> None:
    session = session_of(project)
    client = Client(enforce_csrf_checks=True)
    client.force_login(get_user_model().objects.create_superuser("root", password="x"))
    assert (
        client.post(
            LIST, {"action": "terminate", "_selected_action": str(session.pk), "confirmed": "yes"}
        ).status_code
        == 403
    )


@pytest.mark.parametrize(
    "query",
    ["life=active", "life=ended", "state__exact=RUNNING", "q=cat", "end_reason__exact=exited"],
)
def test_filters_and_search_answer(admin_client: Client, project: Project, query: str) -> None:
    session_of(project)
    assert admin_client.get(f"{LIST}?{query}").status_code == 200


def test_a_session_is_found_by_its_id_and_nonsense_finds_nothing(
    admin_client: Client, project: Project
) -> None:
    session = session_of(project, command="needle")
    assert b"needle" in admin_client.get(f"{LIST}?q={session.pk}").content
    assert (
        b"0 command sessions"
        in admin_client.get(f"{LIST}?q=00000000-0000-4000-8000-000000000000").content
    )
    assert b"0 command sessions" in admin_client.get(f"{LIST}?q=no-such-thing").content


def test_nothing_can_be_added_changed_or_deleted(admin_client: Client, project: Project) -> None:
    session = session_of(project)
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(page_of(session), {"command": "changed"}).status_code == 403
    assert admin_client.post(f"{LIST}{session.pk}/delete/", {"post": "yes"}).status_code == 403


@pytest.mark.requirement("S4.R4.4")
def test_clearing_output_needs_its_permission_a_confirmation_and_an_end(
    admin_client: Client, project: Project
) -> None:
    session = session_of(project, output=b"forget me", kind="job")
    chosen = {"action": "clear", "_selected_action": str(session.pk)}
    assert (
        b"Clear the output" not in staff("view_commandsession", project=project).get(LIST).content
    )
    answer = admin_client.post(LIST, {**chosen, "confirmed": "yes"}, follow=True)
    assert b"None of the selected sessions has ended" in answer.content
    CommandSession.objects.update(state="EXITED", exit_code=0)
    assert b"Yes, clear" in admin_client.post(LIST, chosen).content
    assert output_log.read(session.pk, "stdout", 0, 100).data == b"forget me"
    answer = admin_client.post(LIST, {**chosen, "confirmed": "yes"}, follow=True)
    assert b"Cleared the output of 1 session on " in answer.content
    assert output_log.read(session.pk, "stdout", 0, 100).data == b""
    session.refresh_from_db()
    assert session.cleared_at is not None
    assert (
        AuditEvent.objects.get(session_id=session.pk, action="session.clear").actor == "admin:admin"
    )


def test_the_history_of_a_session_has_no_row_of_another_project(
    admin_client: Client, project: Project
) -> None:
    session = session_of(project)
    audit("token:us", "session.start", (project.pk, None, session.pk))
    # A monitor has the id that its caller chose, which may be that of a session elsewhere.
    elsewhere = Project.objects.create(name="elsewhere")
    audit("token:them", "monitor.start", (elsewhere.pk, None, session.pk))
    address = reverse("admin:projects_commandsession_history", args=[session.pk])
    history = admin_client.get(address).text
    assert "token:us" in history
    assert "token:them" not in history


@pytest.mark.parametrize(("method", "query"), [("post", ""), ("get", "?_to_field=command")])
def test_a_refused_page_of_a_session_leaves_no_audit_row(
    project: Project, method: str, query: str
) -> None:
    session = session_of(project, output=b"secret")
    client = staff("view_commandsession", "view_transcript", project=project)
    response = getattr(client, method)(f"{page_of(session)}{query}")
    assert response.status_code in (400, 403)
    assert not AuditEvent.objects.filter(action="transcript.view").exists()
