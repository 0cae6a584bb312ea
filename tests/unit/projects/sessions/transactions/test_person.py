"""A person is asked once for each prompt, and types at that prompt only."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from projects.accounts.authentication import Caller
from projects.attention.events import attention_resolve
from projects.errors.inputs import PersonPending, PromptGone
from projects.models import AttentionEvent, AuditEvent, CommandSession, Controller
from projects.sessions.idempotency import Request, request_for
from projects.sessions.people.secret import session_ask_person
from projects.sessions.transactions.person import person_ask, person_type
from projects.storage.access import in_database
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)

ASKING = {"terminal_state": "awaiting_input", "terminal_kind": "secret"}


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    """A program that asks for a secret."""
    return make_session(controller, started_at=timezone.now() - timedelta(minutes=1), **ASKING)


def _person(session: CommandSession) -> Caller:
    return Caller(session.project_id, "admin:ada", frozenset({"session:input"}))


def _ask(session: CommandSession, request: Request | None = None) -> Any:
    return person_ask(session.project_id, session.id, None, "the password of web-17", request)


def _request(session: CommandSession) -> Request | None:
    return request_for(session.project_id, uuid4(), "session.ask_person", {})


def test_a_prompt_is_asked_for_once_whatever_the_project_wants(session: CommandSession) -> None:
    assert _ask(session) == _ask(session)
    event = AttentionEvent.objects.get()
    assert (event.wanted, event.path) == (
        "the password of web-17",
        f"/sessions/{session.id}/secret/",
    )
    assert AuditEvent.objects.filter(action="session.ask_person").count() == 1


@pytest.mark.parametrize("is_repeat", [False, True])
def test_a_prompt_that_went_and_came_back_is_asked_for_again(
    session: CommandSession, is_repeat: bool
) -> None:
    request = _request(session) if is_repeat else None
    asked = _ask(session, request)
    attention_resolve(AttentionEvent.objects.get().cause, "went_on")
    assert _ask(session, request) == _ask(session, request) == asked
    event = AttentionEvent.objects.get()
    assert (event.resolved_at, event.wanted) == (None, "the password of web-17")
    assert AuditEvent.objects.filter(action="session.ask_person").count() == 2


def test_a_repeat_asks_at_no_later_prompt(session: CommandSession) -> None:
    request = _request(session)
    _ask(session, request)
    CommandSession.objects.update(input_seq=1, terminal_input_seq=1)
    assert _ask(session, None).event_id
    attention_resolve(AttentionEvent.objects.latest("raised_at").cause, "went_on")
    assert _ask(session, request).event_id is None


def test_nobody_is_asked_if_the_program_asks_for_no_secret(session: CommandSession) -> None:
    CommandSession.objects.update(terminal_kind="line")
    assert _ask(session).event_id is None
    assert not AttentionEvent.objects.exists()


def test_what_a_person_types_ends_the_event_and_is_in_no_row(session: CommandSession) -> None:
    asked = _ask(session)
    typed = person_type(
        session.project_id, session.id, _person(session), b"zarniwoop", asked.input_seq
    )
    assert typed.input_seq == 1
    event = AttentionEvent.objects.get()
    assert (event.resolution, event.resolved_by) == ("answered", "admin:ada")
    assert "zarniwoop" not in str(list(AuditEvent.objects.values()))
    session.refresh_from_db()
    assert b"zarniwoop" not in bytes(session.sealed_secrets or b"")
    body = bytes(session.commands.get().body or b"")
    assert body
    assert b"zarniwoop" not in body


def test_of_two_people_one_types(session: CommandSession) -> None:
    asked = _ask(session)
    person_type(session.project_id, session.id, _person(session), b"first", asked.input_seq)
    with pytest.raises(PromptGone):
        person_type(session.project_id, session.id, _person(session), b"second", asked.input_seq)
    assert CommandSession.objects.get().input_seq == 1


async def test_a_call_that_nobody_answers_names_the_event_and_its_link(
    session: CommandSession,
) -> None:
    with pytest.raises(PersonPending) as pending:
        await session_ask_person(session.project_id, session.id, "the password", wait_seconds=0)
    event = await in_database(AttentionEvent.objects.get)
    assert f"/attention/{event.id}/" in str(pending.value)
    assert pending.value.retryable
