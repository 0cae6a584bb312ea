"""The page of a session: what it says of approvals and of secrets that are wanted."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from django.utils import timezone

from projects.models import ActionRequest, AttentionEvent, AuditEvent, SessionEvent
from projects.output.log import NewChunk, append
from tests.support.rows import make_approval
from tests.unit.console.conftest import PersonWith, Tenant

SEES = ("view_commandsession", "view_transcript")


def test_the_page_leads_to_what_waits_and_says_who_approved(
    person_with: PersonWith, ours: Tenant
) -> None:
    start = uuid4()
    answered = {"answer": "approved", "answered_by": "admin:bob", "answered_at": timezone.now()}
    started = make_approval(ours.project, request_id=start, **answered)
    ActionRequest.objects.create(project=ours.project, request_id=start, session=ours.session)
    waits = make_approval(ours.project, "send_command_input", session_id=ours.session.pk)
    other = make_approval(ours.project, "send_command_input", session_id=uuid4())
    text = person_with(*SEES, "view_approval").get(f"/sessions/{ours.session.pk}/").text
    assert f"/approvals/{waits.pk}/" in text
    assert f"/approvals/{started.pk}/" in text
    assert "admin:bob" in text
    assert f"/approvals/{other.pk}/" not in text


def test_who_may_not_see_approvals_or_type_is_led_nowhere(
    person_with: PersonWith, ours: Tenant
) -> None:
    waits = make_approval(ours.project, "send_command_input", session_id=ours.session.pk)
    AttentionEvent.objects.create(
        project=ours.project, session=ours.session, kind="secret_wanted", wanted="the sudo password"
    )
    text = person_with(*SEES).get(f"/sessions/{ours.session.pk}/").text
    assert f"/approvals/{waits.pk}/" not in text
    assert "the sudo password" not in text


def test_the_page_leads_to_the_field_for_a_secret_that_is_wanted(
    person_with: PersonWith, ours: Tenant
) -> None:
    AttentionEvent.objects.create(
        project=ours.project, session=ours.session, kind="secret_wanted", wanted="the sudo password"
    )
    text = person_with(*SEES, "take_over_session").get(f"/sessions/{ours.session.pk}/").text
    assert f"/sessions/{ours.session.pk}/secret/" in text
    assert "the sudo password" in text


def test_without_the_emulator_the_page_has_the_screen_as_text(
    person_with: PersonWith, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.pages.session.has_terminal", lambda: False)
    data = b"first\x1b[2Jonly <this>\xe2\x80\xae"
    append([NewChunk(ours.session.pk, "stdout", 0, 1, data)])
    type(ours.session).objects.update(stdout_next_offset=len(data))
    text = person_with(*SEES).get(f"/sessions/{ours.session.pk}/").text
    assert "only &lt;this&gt;" in text
    assert "\u202e" not in text
    assert "first" not in text
    assert AuditEvent.objects.get(action="transcript.view").session_id == ours.session.pk


@pytest.mark.django_db(transaction=True)
def test_events_are_told_once_and_lead_to_their_moment(
    person_with: PersonWith, ours: Tenant
) -> None:
    at = datetime(2026, 11, 23, 14, 3, 7, tzinfo=UTC)
    for seq, kind in ((1, "take_over"), (2, "prompt"), (3, "hand_back")):
        SessionEvent.objects.create(
            session=ours.session, seq=seq, kind=kind, actor="<b>ada", host_time=at, offset=0
        )
    person, address = person_with(*SEES), f"/sessions/{ours.session.pk}/events/"
    text = person.get(address).text
    assert text.index("&lt;b&gt;ada handed back") < text.index("&lt;b&gt;ada took over")
    assert text.count("<li") == 2
    moment = f"/sessions/{ours.session.pk}/replay/#t=2026-11-23T14:03:07"
    assert f'data-seq="3"><a class="hand_back" href="{moment}"' in text
    assert person.get(f"{address}?after=3").text.strip() == ""
    assert person.get(f"{address}?after=x").status_code == 400
