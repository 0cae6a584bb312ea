"""The time line names what events are about, narrows them, and shows nothing of other projects."""

import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from projects.audit import unsigned
from projects.audit.log import SERVER, audit
from projects.models import AuditEvent
from tests.support.running.append_only import triggers_lifted
from tests.unit.console.conftest import PersonWith, Tenant, read

# The export reads in threads of its own, which see what is committed.
pytestmark = pytest.mark.django_db(transaction=True)
VERIFY = "/timeline/verify/"
ALL = ("view_auditevent", "view_controller", "view_transcript")


@pytest.fixture(autouse=True)
def _events(ours: Tenant, theirs: Tenant) -> None:
    for tenant in (ours, theirs):
        about = (tenant.project.pk, tenant.host.pk, tenant.session.pk)
        audit(f"token:of-{tenant.project}", "session.start", about)
        audit(f"admin:of-{tenant.project}", "transcript.view", about, {"of": tenant.project.name})
    audit("nobody", "login.failed", (SERVER, None, None), {"from": "192.0.2.77"})


def test_an_event_has_names_seconds_and_links(person_with: PersonWith, ours: Tenant) -> None:
    text = person_with(*ALL).get("/timeline/").text
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d<", text)
    assert f'href="/hosts/{ours.host.pk}/">{ours.host.name}<' in text
    assert f"/share/{ours.session.pk}/?t=" in text
    assert ours.session.command in text


@pytest.mark.parametrize("query", ["", "host", "session", "project", "actor", "action"])
def test_nothing_of_another_project_comes_through(
    person_with: PersonWith, theirs: Tenant, query: str
) -> None:
    values = {
        "": "",
        "host": theirs.host.pk,
        "session": theirs.session.pk,
        "project": theirs.project.pk,
        "actor": "of-theirs",
        "action": "e",
    }
    client = person_with(*ALL, "export_auditevent")
    page = client.get(f"/timeline/?{query}={values[query]}").text
    exported = client.post("/timeline/export/", {query or "action": values[query]})
    for text in (page, read(exported)):
        for secret in ("host-of-theirs", "command-of-theirs", "192.0.2.77", "&quot;theirs"):
            assert secret not in text


def test_an_id_that_is_borrowed_shows_nothing_of_the_session_that_has_it(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    audit("token:us", "monitor.start", (ours.project.pk, ours.host.pk, theirs.session.pk))
    client = person_with(*ALL, "export_auditevent")
    page = client.get("/timeline/?action=monitor").text
    exported = read(client.post("/timeline/export/", {"action": "monitor"}))
    for text in (page, exported):
        assert "monitor.start" in text
        assert "command-of-theirs" not in text
    assert f"/share/{theirs.session.pk}/" not in page
    assert "monitor.start" not in client.get(f"/timeline/?host={theirs.host.pk}").text


def test_a_filter_narrows_and_a_broken_one_shows_nothing(person_with: PersonWith) -> None:
    client = person_with(*ALL)
    narrowed = client.get("/timeline/?action=transcript").text
    assert "transcript.view" in narrowed
    assert "?action=session.start" not in narrowed
    for broken in ("host=web-17", "since=yesterday", "before=x"):
        answer = client.get(f"/timeline/?{broken}&actor=ada")
        assert answer.status_code == 400
        assert 'name="actor" value="ada"' in answer.text
        assert "transcript.view" not in answer.text


def test_a_page_leads_to_the_older_events(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.pages.timeline._SHOWN", 1)
    client = person_with(*ALL)
    first = client.get("/timeline/?actor=of-ours").text
    (older,) = re.findall(r'href="\?(actor=of-ours&amp;before=\d+)"', first)
    assert "transcript.view" in first
    second = client.get(f"/timeline/?{older.replace('&amp;', '&')}").text
    assert "session.start" in second
    assert "Older events" not in second


def test_verifying_says_whether_a_row_was_changed(person_with: PersonWith, ours: Tenant) -> None:
    client = person_with(*ALL, "export_auditevent")
    assert "none is missing or changed" in client.post("/timeline/verify/", follow=True).text
    row = AuditEvent.objects.filter(project_id=ours.project.pk).earliest("seq")
    with triggers_lifted(), connection.cursor() as cursor:
        cursor.execute("UPDATE projects_auditevent SET actor = 'x' WHERE id = %s", [row.pk])
    said = client.post("/timeline/verify/", follow=True).text
    assert f"row {row.seq} is not what was written" in said


def test_a_log_without_a_signed_head_is_not_called_unchanged(
    person_with: PersonWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person_with(*ALL, "export_auditevent")
    # As if the rows had waited longer than a running server lets them wait.
    monkeypatch.setattr(unsigned, "_SETTLED", timedelta(0))
    said = client.post("/timeline/verify/", follow=True).text
    assert "2 rows. No head is signed" in said
    assert "none is missing" not in said


# ---- names lead somewhere ------------------------------------------------------------------------


def test_a_deceptive_name_narrows_the_list_to_what_it_did(
    person_with: PersonWith, ours: Tenant
) -> None:
    about = (ours.project.pk, ours.host.pk, ours.session.pk)
    audit("token:\u0455udo\u200b&action=x", "session.input", about)
    client = person_with(*ALL)
    text = client.get("/timeline/").text
    assert "token:\\u0455udo\\u200b&amp;action=x" in text
    (link,) = re.findall(r'<a href="(\?actor=token%3A%D1%95[^"]*)"', text)
    narrowed = client.get(f"/timeline/{link}").text
    assert "session.input" in narrowed
    assert "session.start" not in narrowed


def test_each_name_of_a_row_is_a_link(person_with: PersonWith, ours: Tenant) -> None:
    text = person_with("view_auditevent").get("/timeline/?action=start").text
    (row,) = re.findall(r"<tr data-row>.*?</tr>", text, re.DOTALL)
    assert re.findall(r'href="([^"]+)"', row) == [
        "?actor=token%3Aof-ours",
        "?action=session.start",
        f"?project={ours.project.pk}",
        f"?host={ours.host.pk}",
        f"?session={ours.session.pk}",
    ]


def test_a_host_and_a_project_that_are_gone_still_narrow_the_list(ours: Tenant) -> None:
    host, project = ours.host.pk, ours.project.pk
    ours.project.delete()
    client = _superuser()
    for narrowed in (f"?host={host}", f"?project={project}"):
        text = client.get(f"/timeline/{narrowed}&action=start").text
        assert f'href="?project={project}">{project}<' in text
        assert f'href="?host={host}">{host}<' in text
        assert "token:of-ours" in text


# ---- verification --------------------------------------------------------------------------------


def _superuser() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def _change_a_row(chain: UUID) -> None:
    row = AuditEvent.objects.filter(project_id=chain).earliest("seq")
    with triggers_lifted(), connection.cursor() as cursor:
        cursor.execute("UPDATE projects_auditevent SET actor = 'x' WHERE id = %s", [row.pk])


def test_who_sees_every_project_verifies_the_servers_own_log_too() -> None:
    client = _superuser()
    assert "the server: 1 rows, none is missing" in client.post(VERIFY, follow=True).text
    _change_a_row(SERVER)
    said = client.post(VERIFY, follow=True).text
    assert "the server: row 1 is not what was written" in said
    assert "ours: 2 rows, none is missing or changed" in said


def test_the_log_of_a_deleted_project_is_verified_too(ours: Tenant) -> None:
    chain = ours.project.pk
    ours.project.delete()
    client = _superuser()
    assert f"{chain}: 2 rows, none is missing" in client.post(VERIFY, follow=True).text
    _change_a_row(chain)
    for form in ({}, {"project": str(chain)}):
        said = client.post(VERIFY, form, follow=True).text
        assert f"{chain}: row 1 is not what was written" in said


def test_the_log_of_one_project_is_verified_alone() -> None:
    client = _superuser()
    said = client.post(VERIFY, {"project": str(SERVER)}, follow=True).text
    assert "the server: 1 rows" in said
    assert "ours:" not in said


@pytest.mark.parametrize("codenames", [(), ("view_all_projects",)])
def test_a_log_that_is_not_there_or_not_theirs_is_said_to_be_none(
    person_with: PersonWith, theirs: Tenant, codenames: tuple[str, ...]
) -> None:
    client = person_with(*ALL, "export_auditevent", *codenames)
    chosen = uuid4() if codenames else theirs.project.pk
    said = client.post(VERIFY, {"project": str(chosen)}, follow=True).text
    assert "Nothing is verified: you see no such log." in said


def test_a_member_is_told_nothing_of_the_servers_log(person_with: PersonWith) -> None:
    _change_a_row(SERVER)
    said = person_with(*ALL, "export_auditevent").post(VERIFY, follow=True).text
    assert "ours: 2 rows, none is missing or changed" in said
    assert "the server" not in said
    assert "theirs" not in said


@pytest.mark.parametrize("project", ["x", "0" * 31, "'"])
def test_a_project_that_is_no_id_verifies_nothing(person_with: PersonWith, project: str) -> None:
    client = person_with(*ALL, "export_auditevent")
    said = client.post(VERIFY, {"project": project}, follow=True).text
    assert "project: " in said
    assert "rows, none is missing" not in said
