"""The keyboard of a session on its page: who may have it, and what the row says."""

import re
from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from controller_client.protocol.codec import decode_from_server
from controller_client.protocol.messages import SendInput
from projects.admin import takeover
from projects.models import AuditEvent, CommandSession, ControllerCommand
from projects.sessions.answers.results import InteractiveOutputResult
from projects.storage.sealing import open_sealed
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
    content = admin_client.get(_url(session, "change")).content.decode()
    assert "You have the keyboard." in content or "Hand back" in content
    admin_client.post(_url(session), {"do": "hand_back", "note": "logged in"})
    session.refresh_from_db()
    assert (session.taken_over_by, session.handback_note) == ("", "admin:admin: logged in")
    actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert {"session.take_over", "session.hand_back"} <= actions
    assert AuditEvent.objects.get(action="session.hand_back").detail == {"note": "logged in"}


def _said(client: Client, session: CommandSession, **form: str) -> str:
    """The only message that the page shows after the button was pressed."""
    response = client.post(_url(session), form, follow=True)
    return " ".join(str(message) for message in response.context["messages"])


def test_a_form_that_is_sent_twice_is_typed_once(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "TYPING_WAIT_SECONDS", 0.1)
    session = make_session(make_controller(lease_expires_at=timezone.now() + timedelta(minutes=1)))
    admin_client.post(_url(session), {"do": "take"})
    page = admin_client.get(_url(session, "change")).text
    once = re.findall(r'name="once" value="([0-9a-f-]{36})"', page)
    assert len(once) == 2
    for _ in range(2):
        _said(admin_client, session, do="line", text="y", once=once[0])
    said = _said(admin_client, session, do="line", text="no", once=once[0])
    assert "REQUEST_ID_REUSED" in said
    assert ControllerCommand.objects.filter(session=session, type="SEND_INPUT").count() == 1


@pytest.mark.parametrize(
    "form",
    [
        {"do": "line"},
        {"do": "line", "text": ""},
        {"do": "text", "text": ""},
        {"do": "keys", "keys": " "},
        {"do": ""},
        {"do": "type"},
    ],
)
def test_an_empty_field_types_nothing_and_says_so(
    admin_client: Client, form: dict[str, str]
) -> None:
    session = make_session(make_controller())
    admin_client.post(_url(session), {"do": "take"})
    assert "Nothing was done" in _said(admin_client, session, **form)
    assert not ControllerCommand.objects.filter(session=session, type="SEND_INPUT").exists()


@pytest.mark.parametrize(
    ("form", "typed", "keys", "said"),
    [
        ({"do": "line", "text": " y"}, b" y\n", [], "Typed a line and Enter."),
        ({"do": "text", "text": "y", "keys": "ctrl-c"}, b"y", [], "Typed, without Enter."),
        (
            {"do": "keys", "keys": "up  ctrl-c", "text": "y"},
            b"",
            ["up", "ctrl-c"],
            "Pressed up ctrl-c.",
        ),
        ({"do": "enter", "text": "y"}, b"", ["enter"], "Pressed Enter."),
    ],
)
def test_each_button_types_what_it_says(
    admin_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    form: dict[str, str],
    typed: bytes,
    keys: list[str],
    said: str,
) -> None:
    monkeypatch.setattr(takeover, "TYPING_WAIT_SECONDS", 0.0)
    session = make_session(make_controller(lease_expires_at=timezone.now() + timedelta(hours=1)))
    admin_client.post(_url(session), {"do": "take"})
    assert said in _said(admin_client, session, **form)
    body = open_sealed(
        ControllerCommand.objects.get(session=session, type="SEND_INPUT").body or b""
    )
    message = decode_from_server.decode(body)
    assert isinstance(message, SendInput)
    assert (message.data, message.keys) == (typed, keys)


@pytest.mark.parametrize(
    ("state", "said"),
    [("exited", "The program has ended."), ("running", "The program goes on.")],
)
def test_what_the_program_does_then_is_said_in_a_sentence(state: str, said: str) -> None:
    result = InteractiveOutputResult.model_construct(state=state, prompt=None)
    assert takeover.sentence_about(result) == said


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


def test_a_keyboard_needs_the_right_to_see_its_session() -> None:
    session = make_session(make_controller())
    user = get_user_model().objects.create_user("op", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="take_over_session"))
    session.project.members.add(user)
    client = Client()
    client.force_login(user)
    assert client.post(_url(session), {"do": "take"}).status_code == 404
    session.refresh_from_db()
    assert session.taken_over_by == ""


def test_a_page_that_is_still_open_types_nothing_without_the_keyboard(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "TYPING_WAIT_SECONDS", 0.0)
    session = make_session(make_controller(lease_expires_at=timezone.now() + timedelta(hours=1)))
    for form in ({"do": "line", "text": "y"}, {"do": "keys", "keys": "up"}, {"do": "enter"}):
        assert "KEYBOARD_NOT_HELD" in _said(admin_client, session, **form)
    assert not ControllerCommand.objects.filter(session=session, type="SEND_INPUT").exists()


def test_an_ended_session_has_no_keyboard(admin_client: Client) -> None:
    session = make_session(make_controller())
    CommandSession.objects.filter(id=session.id).update(state="EXITED")
    assert b"Take over" not in admin_client.get(_url(session, "change")).content
    admin_client.post(_url(session), {"do": "take"})
    session.refresh_from_db()
    assert session.taken_over_by == ""
