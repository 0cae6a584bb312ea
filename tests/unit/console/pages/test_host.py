"""The page of one host: its sessions, and the two buttons that end things there."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from controller_client.protocol.session_state import SessionState
from projects import services
from projects.enrolment.revocation import controller_revoke
from projects.models import AuditEvent, CommandSession, Controller
from projects.sessions.selectors import found_after_starts
from tests.support.rows import make_session
from tests.unit.console.conftest import PersonWith, Tenant

RIGHTS = ("view_controller", "view_commandsession", "terminate_session", "manage_controller")


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The sessions that the service was asked to end."""
    asked: list[Any] = []

    async def end(ids: list[Any], *, actor: str) -> list[str]:
        asked.extend(session for _, session in ids)
        return ["" for _ in ids]

    monkeypatch.setattr(services, "sessions_terminate", end)
    return asked


def test_the_page_counts_in_its_button_what_it_ends(
    person_with: PersonWith, ours: Tenant, ended: list[Any]
) -> None:
    client = person_with(*RIGHTS)
    text = client.get(f"/hosts/{ours.host.pk}/").text
    assert f"Terminate 1 session on {ours.host.name}" in text
    client.post(f"/hosts/{ours.host.pk}/stop/")
    assert ended == [ours.session.pk]


def test_a_session_that_starts_while_others_end_is_ended_too(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[list[Any]] = []

    async def end(ids: list[Any], *, actor: str) -> list[str]:
        rounds.append([session for _, session in ids])
        if len(rounds) == 1:
            late.append((await sync_to_async(make_session)(ours.host)).pk)
        return ["" for _ in ids]

    late: list[Any] = []
    monkeypatch.setattr(services, "sessions_terminate", end)
    answer = person_with(*RIGHTS).post(f"/hosts/{ours.host.pk}/stop/", follow=True)
    assert rounds == [[ours.session.pk], late]
    assert "Ended 2 sessions." in answer.text


def test_a_host_is_revoked_after_its_sessions(
    person_with: PersonWith, ours: Tenant, ended: list[Any]
) -> None:
    text = person_with(*RIGHTS).post(f"/hosts/{ours.host.pk}/revoke/", {"end": "1"}, follow=True)
    assert ended == [ours.session.pk]
    assert Controller.objects.get(pk=ours.host.pk).revoked_at is not None
    assert "revoked" in text.text


@pytest.mark.django_db(transaction=True)
def test_the_lock_of_the_last_look_is_kept_until_the_revocation(
    person_with: PersonWith, ours: Tenant, ended: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def look(*about: Any) -> list[CommandSession]:
        found = found_after_starts(*about)
        transaction.on_commit(lambda: done.append("sessions may start"))
        return found

    def revoke(**about: Any) -> None:
        controller_revoke(**about)
        done.append("revoked")

    monkeypatch.setattr("console.pages.host.found_after_starts", look)
    monkeypatch.setattr("console.pages.host.controller_revoke", revoke)
    person_with(*RIGHTS).post(f"/hosts/{ours.host.pk}/revoke/", {"end": "1"})
    assert ended == [ours.session.pk]
    assert done == ["sessions may start", "revoked", "sessions may start"]


def test_a_host_stays_when_a_session_does_not_end(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(ids: list[Any], *, actor: str) -> list[str]:
        return [f"{actor} cannot end it" for _ in ids]

    monkeypatch.setattr(services, "sessions_terminate", fail)
    answer = person_with(*RIGHTS).post(f"/hosts/{ours.host.pk}/revoke/", {"end": "1"}, follow=True)
    assert Controller.objects.get(pk=ours.host.pk).revoked_at is None
    assert "cannot end it" in answer.text


def test_without_the_right_to_end_sessions_no_host_is_revoked_after_them(
    person_with: PersonWith, ours: Tenant, ended: list[Any]
) -> None:
    client = person_with("view_controller", "view_commandsession", "manage_controller")
    assert "End its sessions first" not in client.get(f"/hosts/{ours.host.pk}/").text
    assert client.post(f"/hosts/{ours.host.pk}/revoke/", {"end": "1"}).status_code == 403
    assert Controller.objects.get(pk=ours.host.pk).revoked_at is None
    client.post(f"/hosts/{ours.host.pk}/revoke/")
    assert Controller.objects.get(pk=ours.host.pk).revoked_at is not None
    assert ended == []


@pytest.mark.parametrize("address", ["", "echo/", "stop/", "revoke/"])
def test_a_host_of_another_project_does_not_exist(
    person_with: PersonWith, theirs: Tenant, ended: list[Any], address: str
) -> None:
    client = person_with(*RIGHTS)
    send = client.post if address else client.get
    assert send(f"/hosts/{theirs.host.pk}/{address}", {"end": "1"}).status_code == 404
    assert Controller.objects.get(pk=theirs.host.pk).revoked_at is None
    assert ended == []


def test_a_second_revocation_and_a_second_stop_do_nothing_more(
    person_with: PersonWith, ours: Tenant, ended: list[Any]
) -> None:
    client = person_with(*RIGHTS)
    for _ in range(2):
        client.post(f"/hosts/{ours.host.pk}/revoke/", {"end": "1"})
    rows = AuditEvent.objects.filter(action="controller.revoke")
    assert [row.actor for row in rows] == ["admin:ann"]
    text = client.get(f"/hosts/{ours.host.pk}/").text
    assert "Revoke this host" not in text


def test_a_list_of_ended_sessions_that_is_cut_says_so(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.pages.host._MOST_ENDED", 2)
    client, address = person_with(*RIGHTS), f"/hosts/{ours.host.pk}/"
    for number in range(2):
        make_session(ours.host, SessionState.EXITED, command=f"ended-{number}")
    text = client.get(address).text
    assert "ended-0" in text
    assert "These are the newest" not in text
    make_session(ours.host, SessionState.EXITED, command="ended-2")
    text = client.get(address).text
    assert "These are the newest 2" in text
    assert "ended-0" not in text
    assert "ended-2" in text


def test_a_host_without_the_right_to_sessions_shows_none_of_them(
    person_with: PersonWith, ours: Tenant
) -> None:
    make_session(ours.host, SessionState.EXITED, command="ended-command")
    text = person_with("view_controller").get(f"/hosts/{ours.host.pk}/").text
    assert ours.session.command not in text
    assert "ended-command" not in text


def test_looking_alone_gives_no_buttons(person_with: PersonWith, ours: Tenant) -> None:
    client = person_with("view_controller", "view_commandsession")
    text = client.get(f"/hosts/{ours.host.pk}/").text
    assert "Terminate" not in text
    assert "Revoke" not in text
    assert client.post(f"/hosts/{ours.host.pk}/revoke/").status_code == 403


@pytest.mark.django_db(transaction=True)
def test_a_host_that_does_not_echo_is_said_to(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.pages.host._LOOKS", 1)
    client = person_with("view_controller")
    assert "not known" in client.get(f"/hosts/{ours.host.pk}/").text
    answer = client.post(f"/hosts/{ours.host.pk}/echo/", follow=True)
    assert "No terminal of the host has echoed" in answer.text


def test_the_health_of_a_host_is_on_its_page(person_with: PersonWith, ours: Tenant) -> None:
    Controller.objects.update(
        echo_ms=12.4, echoed_at=timezone.now(), policy_digest="9f86d081884c", is_stopped=True
    )
    client = person_with("view_controller")
    text = client.get(f"/hosts/{ours.host.pk}/").text
    for fact in ("12 ms, measured just now", "9f86d081884c", "nothing starts here"):
        assert fact in text
    assert "stopped" in client.get("/hosts/").text
