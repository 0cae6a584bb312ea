"""Transactions that race decide again on what they then find."""

from uuid import UUID

import pytest

from controller_client.protocol.messages import StartInteractiveCmd
from controller_client.protocol.session_state import SessionState
from projects.models import CommandSession, ControllerCommand
from projects.sessions import outbox, selectors
from projects.sessions.state import hand_over
from projects.sessions.transactions.control import terminate_session
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


def test_a_withdrawal_reads_again_if_the_session_moved_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = make_session(make_controller(), SessionState.PENDING)
    seq = outbox.allocate_seq(session.controller_id)
    start = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
    outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=start)
    seen = []
    read = selectors.session_of

    def session_of(project_id: UUID, session_id: UUID) -> CommandSession:
        found = read(project_id, session_id)
        seen.append(found.state)
        # As a HELLO after a restore does between the first reading and the withdrawal.
        if len(seen) == 1:
            hand_over(session_id)
        return found

    monkeypatch.setattr(selectors, "session_of", session_of)
    acted = terminate_session(session.project_id, session.id, "alice")
    assert seen[:1] == ["PENDING"]
    assert len(seen) == 2
    assert acted.is_withdrawn
    session.refresh_from_db()
    assert (session.state, session.ended_by) == ("TERMINATED", "alice")
    assert ControllerCommand.objects.get().failure_code == "WITHDRAWN"
