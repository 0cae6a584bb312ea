"""A shared link leads through the login to a session, or to a moment of its replay."""

import pytest
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


@pytest.mark.parametrize(
    "moment", ["", "x" * 41, "14:03:07#x", "14:03 07", "<b>", "%0d%0aX:y", "é"]
)
def test_a_moment_that_is_none_leads_to_the_session(
    person_with: PersonWith, ours: Tenant, moment: str
) -> None:
    answer = person_with("view_commandsession", "view_transcript").get(
        f"/share/{ours.session.pk}/", {"t": moment}
    )
    assert answer["Location"] == f"/sessions/{ours.session.pk}/"


def test_who_may_not_see_screens_is_led_nowhere(person_with: PersonWith, ours: Tenant) -> None:
    client = person_with("view_commandsession")
    assert client.get(f"/share/{ours.session.pk}/").status_code == 403


def test_a_session_of_another_project_does_not_exist(
    person_with: PersonWith, theirs: Tenant
) -> None:
    client = person_with("view_commandsession", "view_transcript")
    assert client.get(f"/share/{theirs.session.pk}/?t=14:03:07").status_code == 404
