"""The search of people: hits with their moment, on record, and only in their own projects."""

import pytest
from django.test import Client

from console.pages import search
from controller_client.protocol.session_state import SessionState
from projects.models import (
    AuditEvent,
    CommandSession,
    Monitor,
    MonitorChunk,
    OutputChunk,
    Project,
)
from tests.support.rows import make_session
from tests.unit.console.conftest import PersonWith, Tenant

pytestmark = pytest.mark.django_db(transaction=True)
RIGHTS = ("view_commandsession", "view_transcript")


@pytest.fixture(autouse=True)
def _output(ours: Tenant, theirs: Tenant) -> None:
    for tenant in (ours, theirs):
        data = f"first\nneedle of {tenant.project}\nlast\n".encode()
        OutputChunk.objects.create(
            session=tenant.session, stream="stdout", offset=0, size=len(data), seq=1, data=data
        )
        CommandSession.objects.filter(pk=tenant.session.pk).update(stdout_next_offset=len(data))


def test_a_hit_has_its_session_and_leads_to_its_moment(
    person_with: PersonWith, ours: Tenant
) -> None:
    text = person_with(*RIGHTS).get("/search/?q=needle").text
    at = OutputChunk.objects.get(session=ours.session).created_at
    assert f"/share/{ours.session.pk}/?t={at:%Y-%m-%dT%H:%M:%S}" in text
    assert "<mark>needle of ours</mark>" in text
    assert "first" in text


def test_the_output_of_another_project_is_never_found(
    person_with: PersonWith, theirs: Tenant
) -> None:
    client = person_with(*RIGHTS)
    for query in ("q=needle", f"q=needle&project={theirs.project.pk}", "q=command-of"):
        text = client.get(f"/search/?{query}").text
        assert "of theirs" not in text
        assert theirs.session.command not in text


def test_a_monitor_with_the_id_of_their_session_shows_nothing_of_it(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    data = b"a needle in a log\n"
    monitor = Monitor.objects.create(
        project=ours.project,
        controller=ours.host,
        session_id=theirs.session.pk,
        log_file="/var/log/ours.log",
        file_identity="1:1",
        next_offset=len(data),
    )
    MonitorChunk.objects.create(monitor=monitor, offset=0, size=len(data), data=data)
    text = person_with(*RIGHTS).get("/search/?q=needle").text
    assert "a needle in a log" in text
    assert "of-theirs" not in text


def test_a_search_is_on_record_without_its_words(person_with: PersonWith, ours: Tenant) -> None:
    person_with(*RIGHTS).get("/search/?q=needle")
    row = AuditEvent.objects.get(action="transcript.search")
    assert (row.actor, row.project_id) == ("admin:ann", ours.project.pk)
    assert row.detail == {"sessions": [str(ours.session.pk)]}


def test_a_search_that_takes_too_long_ends_and_says_so(
    person_with: PersonWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MOST_SECONDS", 0.0)
    text = person_with(*RIGHTS).get("/search/?q=needle").text
    assert "not everything was searched" in text
    assert "needle of ours" not in text


def test_a_wrong_expression_is_explained(person_with: PersonWith) -> None:
    answer = person_with(*RIGHTS).get("/search/?q=(")
    assert answer.status_code == 400
    assert "not a valid regular expression" in answer.text


def test_a_command_is_found_by_its_text(person_with: PersonWith, ours: Tenant) -> None:
    assert ours.session.command in person_with(*RIGHTS).get("/search/?q=command-of").text


def test_hits_need_the_right_to_read_screens(person_with: PersonWith) -> None:
    assert person_with("view_commandsession").get("/search/?q=needle").status_code == 403


# ---- where a search ends -------------------------------------------------------------------------


def _cut(person: Client, query: str) -> tuple[bool, bool]:
    """If the page says that lines, and that commands, were left out."""
    text = person.get(f"/search/?{query}").text
    return "There is more than these lines" in text, "These are the newest" in text


def test_a_search_of_more_projects_than_it_reads_says_so(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person_with(*RIGHTS)
    monkeypatch.setattr(search, "_MOST_PROJECTS", 1)
    assert _cut(client, "q=needle") == (False, False)
    another = Project.objects.create(name="z-another")
    another.members.set(ours.project.members.all())
    assert _cut(client, "q=needle") == (True, False)
    assert _cut(client, f"q=needle&project={ours.project.pk}") == (False, False)


def test_hits_beyond_those_that_are_shown_are_said(
    person_with: PersonWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person_with(*RIGHTS)
    monkeypatch.setattr(search, "_MOST_HITS", 3)
    assert _cut(client, "q=.*t") == (False, False)
    monkeypatch.setattr(search, "_MOST_HITS", 1)
    assert _cut(client, "q=.*t") == (True, False)


def test_commands_beyond_those_that_are_shown_are_said(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = person_with(*RIGHTS)
    monkeypatch.setattr(search, "_MOST_COMMANDS", 1)
    assert _cut(client, "q=command-of") == (False, False)
    make_session(ours.host, SessionState.EXITED, command="command-of-later")
    assert _cut(client, "q=command-of") == (False, True)
    text = client.get("/search/?q=command-of").text
    assert "command-of-later" in text
    assert ours.session.command not in text


@pytest.mark.parametrize("query", ["q=", "q=needle&project=x", "q=needle&project=%27", "q=nowhere"])
def test_a_search_that_finds_nothing_is_not_on_record(person_with: PersonWith, query: str) -> None:
    assert person_with(*RIGHTS).get(f"/search/?{query}").status_code == 200
    assert not AuditEvent.objects.filter(action="transcript.search").exists()


def test_a_line_is_matched_and_not_what_lies_across_two(person_with: PersonWith) -> None:
    client = person_with(*RIGHTS)
    assert "<mark>" not in client.get("/search/?q=first(.|%5Cn)needle").text
    assert "<mark>needle of ours</mark>" in client.get("/search/?q=^needle.*ours$").text


def test_each_search_that_shows_output_is_on_record(person_with: PersonWith) -> None:
    client = person_with(*RIGHTS)
    for _ in range(2):
        client.get("/search/?q=needle")
    assert AuditEvent.objects.filter(action="transcript.search").count() == 2
