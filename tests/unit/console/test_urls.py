"""Every address of the console asks who is there, and for which projects."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from agent.models import AgentRun
from console.urls import urlpatterns
from projects.models import AttentionEvent, CommandSession
from tests.support.rows import make_approval
from tests.unit.console.conftest import read

pytestmark = pytest.mark.django_db
_LIMITS = ("max_steps", "max_tokens", "max_cost_cents", "output_bytes", "max_run_seconds")
OPEN = {"login", "logout", "ask_code", "second_factor"}


def addresses_of(session: CommandSession) -> list[str]:
    run, _ = AgentRun.objects.get_or_create(
        project=session.project,
        task="hidden-command",
        model="scripted:demo",
        defaults=dict.fromkeys(_LIMITS, 1),
    )
    approval = make_approval(
        session.project, id=77, host="web-17", session_command="hidden-command"
    )
    event, _ = AttentionEvent.objects.get_or_create(
        project=session.project, cause="hidden-command", kind="secret_wanted"
    )
    ids = {
        "session_id": session.pk,
        "host_id": session.controller_id,
        "run_id": run.pk,
        "approval_id": approval.pk,
        "event_id": event.pk,
        "message_id": event.pk,
    }
    found = []
    for pattern in urlpatterns:
        if pattern.name not in OPEN:
            taken = {name: ids.get(name, 1) for name in pattern.pattern.converters}
            found.append(reverse(f"console:{pattern.name}", kwargs=taken))
    return found


def _person(**fields: Any) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("ann", is_staff=True, **fields))
    return client


def test_nobody_sees_a_page_without_a_login(session: CommandSession) -> None:
    for address in addresses_of(session):
        answer = Client().get(address)
        assert answer.status_code == 302, address
        assert answer["Location"].startswith("/login/?next="), address


def test_a_person_without_rights_is_refused_everywhere(session: CommandSession) -> None:
    client = _person()
    session.project.members.add(User.objects.get())
    assert {client.get(address).status_code for address in addresses_of(session)} == {403}


def test_a_person_sees_nothing_of_another_project(session: CommandSession) -> None:
    client = _person()
    rights = Permission.objects.exclude(codename="view_all_projects")
    User.objects.get().user_permissions.set(rights)
    addresses = addresses_of(session)
    named = (session.pk, session.controller_id, AgentRun.objects.get().pk)
    ids = {str(each) for each in (*named, AttentionEvent.objects.get().pk)}
    ids |= {"approvals/77"}
    for address in addresses:
        is_named = any(one in address for one in ids)
        for answer in (client.get(address), client.post(address)):
            assert answer.status_code in ({404, 405} if is_named else {200, 302, 405}), address
            text = read(answer)
            assert "hidden-command" not in text, address
            assert "web-17" not in text, address
    session.refresh_from_db()
    assert session.state == "RUNNING"
    assert session.controller.revoked_at is None


def test_an_address_that_only_takes_a_form_says_so_on_a_page(session: CommandSession) -> None:
    client = _person(is_superuser=True)
    addresses = [*addresses_of(session), reverse("console:logout")]
    answers = {address: client.get(address) for address in addresses}
    refused = {one: answer for one, answer in answers.items() if answer.status_code == 405}
    assert {"/hosts/enrol/", "/logout/"} <= refused.keys()
    for address, answer in refused.items():
        assert "This address only takes a form" in answer.text, address
        assert "POST" in answer["Allow"], address


def test_every_answer_has_a_nonce_of_its_own() -> None:
    answers = [Client().get(reverse("console:login")) for _ in range(2)]
    nonces = [
        re.findall(r"'nonce-([\w-]{20,})'", answer["Content-Security-Policy"]) for answer in answers
    ]
    assert nonces[0] != nonces[1]
    for answer, (nonce,) in zip(answers, nonces, strict=True):
        assert f'nonce="{nonce}"' in answer.text
        assert "unsafe" not in answer["Content-Security-Policy"]
