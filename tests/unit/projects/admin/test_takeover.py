"""The keyboard of a session on its page: who may have it, and what the row says."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from projects.models import AuditEvent, CommandSession
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)


def _url(session: CommandSession, page: str = "operate") -> str:
    return reverse(f"admin:projects_commandsession_{page}", args=[session.pk])


def test_an_operator_takes_the_keyboard_and_hands_it_back_with_a_note(admin_client: Client) -> None:
    session = make_session(make_controller())
    assert b"Take over" in admin_client.get(_url(session, "change")).content
    admin_client.post(_url(session), {"do": "take"})
    session.refresh_from_db()
    assert session.taken_over_by == "admin:admin"
    assert b"Hand back" in admin_client.get(_url(session, "change")).content
    admin_client.post(_url(session), {"do": "hand_back", "note": "logged in"})
    session.refresh_from_db()
    assert (session.taken_over_by, session.handback_note) == ("", "admin:admin: logged in")
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"session.take_over", "session.hand_back"} <= actions


def test_a_keyboard_is_for_those_who_may_take_it(admin_client: Client) -> None:
    session = make_session(make_controller())
    user = get_user_model().objects.create_user("op", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_commandsession"))
    session.project.members.add(user)
    client = Client()
    client.force_login(user)
    assert client.post(_url(session), {"do": "take"}).status_code == 403
    assert client.get(_url(session)).status_code == 405
    session.refresh_from_db()
    assert session.taken_over_by == ""


def test_an_ended_session_has_no_keyboard(admin_client: Client) -> None:
    session = make_session(make_controller())
    CommandSession.objects.filter(id=session.id).update(state="EXITED")
    assert b"Take over" not in admin_client.get(_url(session, "change")).content
    admin_client.post(_url(session), {"do": "take"})
    session.refresh_from_db()
    assert session.taken_over_by == ""
