"""The list of what wants a person, and where a message leads."""

from uuid import uuid4

import pytest
from django.utils import timezone

from console.pages.waiting import attention
from projects.attention import messages
from projects.models import AttentionEvent, AttentionMessage, AttentionTarget, AuditEvent
from tests.unit.console.conftest import PersonWith, Tenant


def _event(tenant: Tenant, **fields: object) -> AttentionEvent:
    return AttentionEvent.objects.create(
        **{
            "cause": str(uuid4()),
            "kind": "secret_wanted",
            "project": tenant.project,
            "path": "/sessions/",
            "wanted": f"the secret of {tenant.project}",
            "due_at": timezone.now(),
            **fields,
        }
    )


def test_what_waits_is_listed_for_the_people_of_the_project(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    _event(ours)
    foreign = _event(theirs)
    person = person_with("view_commandsession", "take_over_session")
    text = person.get("/attention/").text
    assert f"the secret of {ours.project}" in text
    assert f"the secret of {theirs.project}" not in text
    for address in ("", "snooze/"):
        at = f"/attention/{foreign.pk}/{address}"
        assert person.post(at, {"minutes": "15"}).status_code == 404


def test_a_list_that_is_cut_says_so(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    _event(ours)
    monkeypatch.setattr(attention, "_MOST", 1)
    assert "These are the 1 newest" in person_with("view_commandsession").get("/attention/").text


def test_a_message_leads_to_the_page_it_is_about(person_with: PersonWith, ours: Tenant) -> None:
    person = person_with("view_commandsession")
    for path, led_to in (("/runs/", "/runs/"), ("//evil.example/", "/attention/")):
        event = _event(ours, path=path)
        answer = person.get(f"/attention/{event.pk}/")
        assert (answer.status_code, answer["Location"]) == (302, led_to)


def test_a_snoozed_event_rests_and_is_audited(person_with: PersonWith, ours: Tenant) -> None:
    event = _event(ours)
    person = person_with("view_commandsession", "take_over_session")
    person.post(f"/attention/{event.pk}/snooze/", {"minutes": "15"})
    event.refresh_from_db()
    assert event.snoozed_until == event.due_at
    assert "At rest" in person.get("/attention/").text
    assert AuditEvent.objects.filter(action="attention.snooze").count() == 1


def test_a_snooze_needs_a_time(person_with: PersonWith, ours: Tenant) -> None:
    event = _event(ours)
    at = f"/attention/{event.pk}/snooze/"
    person = person_with("view_commandsession", "take_over_session")
    for minutes in ("", "0", "-1", "99999", "²", "9" * 50):
        person.post(at, {"minutes": minutes})
    event.refresh_from_db()
    assert event.snoozed_until is None


def _dead_letter(tenant: Tenant) -> AttentionMessage:
    target = AttentionTarget.objects.create(
        project=tenant.project, name="ops", way="webhook", place="x", sealed_address=b""
    )
    now = timezone.now()
    fields = {"kind": "test", "event_count": 0, "body": "{}", "dead_at": now}
    return AttentionMessage.objects.create(target=target, last_error="it was away", **fields)


def test_a_dead_letter_is_seen_and_sent_again(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    letter, foreign = _dead_letter(ours), _dead_letter(theirs)
    person = person_with("view_commandsession", "change_project")
    assert person.get("/attention/").text.count("it was away") == 1
    for each in (letter, foreign):
        person.post(f"/messages/{each.pk}/again/")
    letter.refresh_from_db()
    foreign.refresh_from_db()
    assert (letter.dead_at, letter.due_at is None, foreign.due_at) == (None, False, None)


def test_a_dead_letter_for_which_there_is_no_room_stays(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MOST_WAITING", 0)
    letter = _dead_letter(ours)
    person = person_with("view_commandsession", "change_project")
    person.post(f"/messages/{letter.pk}/again/")
    assert "0 messages wait for this target already" in person.get("/attention/").text
    letter.refresh_from_db()
    assert (letter.dead_at is None, letter.due_at) == (False, None)


def test_without_the_rights_nothing_is_snoozed_and_no_letter_seen(
    person_with: PersonWith, ours: Tenant
) -> None:
    event, letter = _event(ours), _dead_letter(ours)
    person = person_with("view_commandsession")
    assert "it was away" not in person.get("/attention/").text
    for address in (f"/attention/{event.pk}/snooze/", f"/messages/{letter.pk}/again/"):
        assert person.post(address, {"minutes": "15"}).status_code == 403
