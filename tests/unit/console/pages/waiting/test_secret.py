"""The page on which a person types a secret: for whom, and for which prompt."""

from uuid import uuid4

from django.test import Client

from projects.models import CommandSession
from tests.unit.console.conftest import PersonWith, Tenant

RIGHTS = ("view_commandsession", "take_over_session")


def _ask(tenant: Tenant) -> str:
    asks = {"terminal_state": "awaiting_input", "terminal_kind": "secret", "terminal_prompt": "PIN"}
    CommandSession.objects.filter(pk=tenant.session.pk).update(**asks)
    return f"/sessions/{tenant.session.pk}/secret/"


def test_the_page_has_one_field_while_the_program_asks(
    person_with: PersonWith, ours: Tenant
) -> None:
    at = _ask(ours)
    person = person_with(*RIGHTS)
    answer = person.get(at)
    assert answer.text.count('type="password"') == 1
    assert answer["Cache-Control"] == "no-store"
    # The prompt is part of the screen, which this person may not see.
    assert "PIN" not in answer.text
    CommandSession.objects.update(terminal_state="running")
    assert 'type="password"' not in person.get(at).text


def test_without_the_right_and_in_other_projects_nothing_is_typed(
    person_with: PersonWith, ours: Tenant, theirs: Tenant
) -> None:
    here, there = _ask(ours), _ask(theirs)
    person = person_with("view_commandsession")
    assert person.get(here).status_code == person.post(here).status_code == 403
    assert person_post(person, there) == 403


def person_post(person: Client, at: str) -> int:
    """The status of a POST with a secret."""
    answer = person.post(at, {"typed": "x", "input_seq": "0"})
    return int(answer.status_code)


def test_a_session_of_another_project_does_not_exist(
    person_with: PersonWith, theirs: Tenant
) -> None:
    person = person_with(*RIGHTS)
    for at in (_ask(theirs), f"/sessions/{uuid4()}/secret/"):
        assert person.get(at).status_code == 404
        assert person_post(person, at) == 404
