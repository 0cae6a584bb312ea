"""Transactions that race decide again on what they then find."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from controller_client.protocol.messages import StartInteractiveCmd
from controller_client.protocol.session_state import SessionState
from projects.models import CommandSession, ControllerCommand
from projects.sessions import outbox, selectors
from projects.sessions.state import hand_over
from projects.sessions.transactions.control import terminate_session
from projects.upkeep.sweeper import idle_sessions
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


def test_a_plain_signal_does_not_count_as_asking_for_the_end(settings: Any) -> None:
    settings.BACKGROUND_IDLE_SECONDS = 60
    long_ago = timezone.now() - timedelta(seconds=61)
    session = make_session(make_controller(), kind="background", touched_at=long_ago)
    asked = (session.project_id, session.id)
    terminate_session(*asked, "alice", signal_name="SIGWINCH", is_escalated=False)
    session.refresh_from_db()
    assert (session.ended_by, idle_sessions()) == ("", [asked])
    terminate_session(*asked, "bob")
    terminate_session(*asked, "alice", signal_name="SIGUSR1", is_escalated=False)
    session.refresh_from_db()
    assert (session.ended_by, idle_sessions()) == ("bob", [])
