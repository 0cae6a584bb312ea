"""A shared link leads through the login to a session, or to a moment of its replay."""

from django.test import Client

from tests.unit.console.conftest import PersonWith, Tenant


def test_a_link_leads_to_the_session_or_to_the_moment(
    person_with: PersonWith, ours: Tenant
) -> None:
    client = person_with("view_commandsession", "view_transcript")
    link = f"/share/{ours.session.pk}/"
    assert client.get(link)["Location"] == f"/sessions/{ours.session.pk}/"
    replay = f"/sessions/{ours.session.pk}/replay/"
    assert client.get(f"{link}?t=14:03:07")["Location"] == f"{replay}#t=14:03:07"
    assert client.get(f"{link}?t=//evil.example")["Location"] == f"/sessions/{ours.session.pk}/"


def test_the_moment_survives_the_login_page(ours: Tenant) -> None:
    answer = Client().get(f"/share/{ours.session.pk}/?t=14:03:07")
    assert answer["Location"].endswith(f"?next=/share/{ours.session.pk}/%3Ft%3D14%3A03%3A07")
