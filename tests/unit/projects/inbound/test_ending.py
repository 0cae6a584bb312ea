"""An end is final and on record."""

import pytest

from controller_client.protocol.errors import IllegalTransition
from controller_client.protocol.session_state import SessionState
from projects.inbound.ending import end_session
from projects.models import AuditEvent
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


def test_an_end_is_stored_with_its_reason_and_audited() -> None:
    session = make_session(make_controller())
    end_session(session, SessionState.LOST, actor="sweeper", end_reason="lost")
    session.refresh_from_db()
    assert (session.state, session.end_reason) == ("LOST", "lost")
    assert session.ended_at is not None
    event = AuditEvent.objects.get()
    assert (event.actor, event.action, event.session_id, event.project_id) == ("sweeper", "session.end", session.id, session.project_id)


def test_what_has_ended_does_not_end_again() -> None:
    session = make_session(make_controller(), SessionState.EXITED)
    with pytest.raises(IllegalTransition):
        end_session(session, SessionState.LOST, actor="sweeper")
    session.refresh_from_db()
    assert session.state == "EXITED"
    assert AuditEvent.objects.count() == 0


def test_a_program_that_never_ran_cannot_exit() -> None:
    session = make_session(make_controller(), SessionState.PENDING)
    with pytest.raises(IllegalTransition):
        end_session(session, SessionState.EXITED, actor="server")
