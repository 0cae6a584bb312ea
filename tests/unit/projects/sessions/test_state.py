"""A session's state moves by the table in one statement, and an end is final and on record."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controller_client.protocol.errors import IllegalTransition
from controller_client.protocol.session_state import TRANSITIONS, SessionState
from projects.models import AuditEvent, CommandSession, ControllerCommand
from projects.sessions.state import (
    SessionMoved,
    add_session,
    end_lost,
    end_session,
    hand_over,
    move_session,
)
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db

PENDING, SENT, RUNNING = SessionState.PENDING, SessionState.SENT, SessionState.RUNNING
STEPS = [(before, after) for before in SessionState for after in sorted(TRANSITIONS[before])]
ALL_STEPS = [(before, after) for before in SessionState for after in SessionState]
OTHER_STEPS = [step for step in ALL_STEPS if step not in STEPS]


def _unsaved(**fields: Any) -> CommandSession:
    controller = make_controller()
    project_id = controller.project_id
    return CommandSession(project_id=project_id, controller=controller, command="cat", **fields)


def _state(session: CommandSession) -> str:
    return CommandSession.objects.values_list("state", flat=True).get(id=session.id)


@pytest.mark.parametrize("state", [PENDING, SENT, RUNNING])
def test_a_session_begins_with_one_insert(state: SessionState) -> None:
    session = _unsaved()
    with CaptureQueriesContext(connection) as queries:
        add_session(session, state)
    assert [query["sql"].split()[0] for query in queries] == ["INSERT"]
    assert _state(session) == state


def test_a_new_session_is_pending_whatever_its_row_says() -> None:
    session = _unsaved(state="EXITED")
    add_session(session)
    assert _state(session) == "PENDING"


@pytest.mark.parametrize("state", [state for state in SessionState if state.is_final])
def test_no_session_begins_with_its_end(state: SessionState) -> None:
    with pytest.raises(ValueError, match=state):
        add_session(_unsaved(), state)
    assert not CommandSession.objects.exists()


@pytest.mark.parametrize(("before", "after"), STEPS)
def test_a_step_of_the_table_costs_one_update(before: SessionState, after: SessionState) -> None:
    session = make_session(make_controller(), before)
    bystander = make_session(session.controller, before)
    with CaptureQueriesContext(connection) as queries:
        move_session(session.id, before, after, warning="why", pid=7)
    assert [query["sql"].split()[0] for query in queries] == ["UPDATE"]
    session.refresh_from_db()
    assert (session.state, session.warning, session.pid) == (after, "why", 7)
    assert _state(bystander) == before


@pytest.mark.parametrize(("before", "after"), OTHER_STEPS)
def test_another_step_sends_no_statement(before: SessionState, after: SessionState) -> None:
    session = make_session(make_controller(), before)
    with CaptureQueriesContext(connection) as queries, pytest.raises(IllegalTransition):
        move_session(session.id, before, after)
    assert len(queries) == 0
    assert _state(session) == before


@pytest.mark.parametrize("now", sorted(set(SessionState) - {SENT}))
def test_a_decision_on_an_old_state_changes_nothing(now: SessionState) -> None:
    session = make_session(make_controller(), now)
    with pytest.raises(SessionMoved) as raised:
        move_session(session.id, SENT, RUNNING, pid=7)
    session.refresh_from_db()
    assert (session.state, session.pid) == (now, None)
    assert raised.value.session_id == session.id
    assert (raised.value.from_state, raised.value.to_state) == (SENT, RUNNING)


def test_a_session_that_is_gone_does_not_move() -> None:
    with pytest.raises(SessionMoved):
        move_session(uuid4(), SENT, RUNNING)


@pytest.mark.parametrize("state", list(SessionState))
def test_only_a_pending_session_is_handed_over(state: SessionState) -> None:
    session = make_session(make_controller(), state)
    with CaptureQueriesContext(connection) as queries:
        assert hand_over(session.id) is (state == PENDING)
    assert len(queries) == 1
    assert _state(session) == (SENT if state == PENDING else state)


def test_an_end_decided_on_an_old_state_is_not_recorded() -> None:
    session = make_session(make_controller())
    command = _input(session, 1)
    CommandSession.objects.filter(id=session.id).update(state="EXITED")
    with pytest.raises(SessionMoved):
        end_session(session, SessionState.LOST, actor="sweeper")
    command.refresh_from_db()
    assert (_state(session), command.settled_at) == ("EXITED", None)
    assert AuditEvent.objects.count() == 0


def test_an_end_is_stored_with_its_reason_and_audited() -> None:
    session = make_session(make_controller())
    end_session(session, SessionState.LOST, actor="sweeper", end_reason="lost")
    session.refresh_from_db()
    assert (session.state, session.end_reason) == ("LOST", "lost")
    assert session.ended_at is not None
    event = AuditEvent.objects.get()
    assert (event.actor, event.action, event.session_id, event.project_id) == (
        "sweeper",
        "session.end",
        session.id,
        session.project_id,
    )


def _input(session: CommandSession, number: int, **fields: Any) -> ControllerCommand:
    kind: dict[str, Any] = {
        "type": "SEND_INPUT",
        "seq": number,
        "input_seq": number,
        "body": b"sealed",
    }
    return ControllerCommand.objects.create(
        controller_id=session.controller_id, session=session, **{**kind, **fields}
    )


@pytest.mark.parametrize("state", [SessionState.LOST, SessionState.EXITED])
def test_only_an_input_that_was_never_sent_was_surely_not_typed(state: SessionState) -> None:
    session = make_session(make_controller())
    sent, unsent, resize = (
        _input(session, 1, sent_epoch=3),
        _input(session, 2),
        _input(session, 3, type="RESIZE", input_seq=None),
    )
    end_session(session, state, actor="sweeper")
    for command in (sent, unsent, resize):
        command.refresh_from_db()
        assert (command.settled_at is None, command.body) == (False, None)
    assert (sent.failure_code, unsent.failure_code, resize.failure_code) == (
        "INPUT_UNCONFIRMED",
        "SESSION_ENDED",
        "",
    )
    assert "not known" in sent.failure_message
    assert "before the input could be typed" in unsent.failure_message


def test_only_a_signal_that_never_left_was_surely_not_sent() -> None:
    session = make_session(make_controller())
    signals = [
        _input(session, number, type="TERMINATE_CMD", input_seq=None, sent_epoch=epoch)
        for number, epoch in ((1, 3), (2, None))
    ]
    end_session(session, SessionState.EXITED, actor="host")
    for signal in signals:
        signal.refresh_from_db()
    assert [signal.failure_code for signal in signals] == ["", "SESSION_ENDED"]


@pytest.mark.parametrize(
    ("state", "started", "code"),
    [("SENT", False, "START_LOST"), ("RUNNING", True, ""), ("RUNNING", False, "")],
)
def test_a_lost_session_says_whether_it_is_known_to_have_begun(
    state: str, started: bool, code: str
) -> None:
    session = make_session(
        make_controller(), SessionState(state), started_at=timezone.now() if started else None
    )
    end_lost(session, actor="sweeper", note="why")
    session.refresh_from_db()
    assert (session.state, session.end_reason, session.notes, session.failure_code) == (
        "LOST",
        "lost",
        ["why"],
        code,
    )


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
