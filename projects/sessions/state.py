"""A session's state: the only module that writes it.

A session begins with ``add_session`` and moves with ``hand_over``, ``move_session``,
``end_session`` and ``end_lost``. Each step is looked up in the table of
``controller_client.protocol.session_state`` before a statement is sent. The statement changes the
row only while the row is still in the state that the step starts from, so a caller that decided on
an old state changes nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol, TypedDict, Unpack
from uuid import UUID

from controller_client.protocol.messages import HostTime
from controller_client.protocol.session_state import SessionState, check_transition
from projects.attention.events import Cause, attention_raise
from projects.audit.log import audit
from projects.errors.uncertain import (
    ENDED_BEFORE,
    ENDED_MEANWHILE,
    INPUT_UNCONFIRMED,
    START_LOST,
    START_LOST_TEXT,
)
from projects.models import AttentionKind, AuditEvent, CommandSession
from projects.output.recording import events
from projects.output.recording.events import NewEvent
from projects.storage import clock
from projects.storage.columns import as_json, as_parameter, as_time, as_uuid, time_as_parameter
from projects.storage.rows import execute, row_insert, row_swap

SESSION_ENDED = "SESSION_ENDED"
_MAX_DURATION_MS: Final = 2.0**53

# A command that was still on its way to the program cannot reach the program any more. Bodies may
# hold secrets and are deleted at once. Only an input that was never sent is known not to be typed:
# the answer to an input that was sent may have died with a holder or a connection. So it is with a
# signal.
_SETTLE_ALL = """
UPDATE projects_controllercommand
SET settled_at = %s, body = NULL,
    failure_code = CASE
        WHEN type = 'TERMINATE_CMD' AND sent_epoch IS NULL THEN %s
        WHEN type <> 'SEND_INPUT' THEN failure_code WHEN sent_epoch IS NULL THEN %s ELSE %s END,
    failure_message = CASE
        WHEN type <> 'SEND_INPUT' THEN failure_message WHEN sent_epoch IS NULL THEN %s ELSE %s END
WHERE session_id = %s AND settled_at IS NULL
"""

_FIND = """
SELECT s.project_id, s.controller_id, s.state, s.started_at, s.ended_by, s.notes, c.name
FROM projects_commandsession s JOIN projects_controller c ON c.id = s.controller_id WHERE s.id = %s
"""


class SessionMoved(Exception):
    """The session was not in the state that a transition starts from. Nothing was changed.

    A caller that holds the row's lock never sees this error. Another caller reads the session
    again and decides again.
    """

    def __init__(self, session_id: UUID, from_state: SessionState, to_state: SessionState) -> None:
        self.session_id = session_id
        self.from_state = from_state
        self.to_state = to_state
        why = f"is not in state {from_state} and did not become {to_state}"
        super().__init__(f"session {session_id} {why}")


class SessionColumns(TypedDict, total=False):
    """Columns of a session that may be set together with its state."""

    pid: int | None
    io_mode: str
    warning: str
    started_at: datetime
    lifetime_ends_at: datetime | None
    paused_at: datetime | None
    pause_left_seconds: float | None
    ended_at: datetime
    end_reason: str
    ended_by: str
    exit_code: int | None
    signal: str
    failure_code: str
    failure_message: str
    duration_ms: int | None
    survivors: list[str]
    notes: list[str]


class Endable(Protocol):
    """The fields that are needed to end a session."""

    id: UUID
    project_id: UUID
    controller_id: UUID
    state: str
    started_at: datetime | None


class Losable(Endable, Protocol):
    """The fields that are needed to end a session as lost."""

    notes: list[str]


@dataclass
class EndingSession:
    """A session that is about to end, read in one short statement."""

    id: UUID
    project_id: UUID
    controller_id: UUID
    state: str
    started_at: datetime | None
    ended_by: str
    notes: list[str]
    controller_name: str


# ---- begin and move ------------------------------------------------------------------------------


def add_session(session: CommandSession, state: SessionState = SessionState.PENDING) -> None:
    """Insert a new session. A session that a host brought along begins as SENT or RUNNING.

    Raises ValueError for a final state, and IntegrityError as ``save(force_insert=True)`` does.
    """
    if state.is_final:
        raise ValueError(f"a session does not begin in state {state}")
    session.state = state.value
    row_insert(session)


def hand_over(session_id: UUID) -> bool:
    """Record that the host was given the session's START: PENDING becomes SENT.

    Returns False for a session that is not PENDING; then nothing was changed.
    """
    return _swap(session_id, SessionState.PENDING, SessionState.SENT, {})


def move_session(
    session_id: UUID,
    from_state: SessionState,
    to_state: SessionState,
    **columns: Unpack[SessionColumns],
) -> None:
    """Move the session and set ``columns``, in one UPDATE.

    Raises IllegalTransition if the table does not have the step, before a statement is sent.
    Raises SessionMoved if the session is not in ``from_state``.
    """
    if not _swap(session_id, from_state, to_state, columns):
        raise SessionMoved(session_id, from_state, to_state)


def _swap(
    session_id: UUID,
    from_state: SessionState,
    to_state: SessionState,
    columns: SessionColumns,
) -> bool:
    check_transition(from_state, to_state)
    return row_swap(
        CommandSession,
        session_id,
        expected={"state": from_state.value},
        values={"state": to_state.value, **columns},
    )


# ---- end -----------------------------------------------------------------------------------------


def ending_session(session_id: UUID) -> EndingSession:
    """Read the session that is about to end. Raises CommandSession.DoesNotExist."""
    row = execute(_FIND, [as_parameter(session_id)]).fetchone()
    if row is None:
        raise CommandSession.DoesNotExist
    project_id, controller_id, state, started_at, ended_by, notes, name = row
    return EndingSession(
        id=session_id,
        project_id=as_uuid(str(project_id)),
        controller_id=as_uuid(str(controller_id)),
        state=state,
        started_at=as_time(started_at),
        ended_by=ended_by,
        notes=as_json(notes),
        controller_name=name,
    )


def ended_by(session: EndingSession, signal: str) -> str:
    """The caller who ended the session, or its host if no caller did.

    A caller whose plain signal the program survived did not end it. ``signal`` is the one it
    died of, if it did.
    """
    if session.ended_by or not signal:
        return session.ended_by or "host"
    sent = AuditEvent.objects.filter(
        session_id=session.id, action="session.terminate", detail__signal=signal
    )
    return sent.order_by("-id").values_list("actor", flat=True).first() or "host"


def end_session(
    session: Endable,
    state: SessionState,
    *,
    actor: str,
    duration_seconds: float = 0.0,
    at: HostTime | None = None,
    offset: int | None = None,
    **columns: Unpack[SessionColumns],
) -> None:
    """End ``session`` in ``state``, settle its open commands and audit the end.

    Runs inside the transaction in which ``session`` was read and locked. ``duration_seconds`` is
    how long the program ran, as its host measured it; 0 if that is not known. ``at`` is when the
    host knew of the end, and ``offset`` where its output ends, if that is not stored yet. Raises
    IllegalTransition from a final state and SessionMoved; then nothing was changed.
    """
    now = clock.now()
    columns["ended_at"] = _ended_at(session.started_at, duration_seconds, now)
    move_session(session.id, SessionState(session.state), state, **columns)
    settle_commands(session.id, now)
    detail = {
        "state": state.value,
        "exit_code": columns.get("exit_code"),
        "signal": columns.get("signal"),
        "failure_code": columns.get("failure_code"),
    }
    about = (session.project_id, session.controller_id, session.id)
    known = {name: value for name, value in detail.items() if value is not None}
    events.append([NewEvent(session.id, "end", offset, actor, known, at)])
    audit(actor, "session.end", about, known)
    if state == SessionState.LOST:
        attention_raise(_lost(session))


def _lost(session: Endable) -> Cause:
    return Cause(
        kind=AttentionKind.SESSION_LOST,
        key=f"session_lost:{session.id}",
        project_id=session.project_id,
        controller_id=session.controller_id,
        session_id=session.id,
    )


def end_lost(session: Losable, *, actor: str, note: str) -> None:
    """End ``session`` as LOST and add ``note``. Raises what ``end_session`` raises.

    A session that nobody reported as begun may have run all the same: its failure code says so.
    """
    columns = SessionColumns(end_reason="lost", ended_by="host", notes=[*session.notes, note])
    if session.started_at is None and session.state != SessionState.RUNNING:
        columns["failure_code"] = START_LOST
        columns["failure_message"] = START_LOST_TEXT
    end_session(session, SessionState.LOST, actor=actor, **columns)


def settle_commands(session_id: UUID, now: datetime) -> None:
    """Settle every open command of a session that is over."""
    words = [SESSION_ENDED, SESSION_ENDED, INPUT_UNCONFIRMED, ENDED_BEFORE, ENDED_MEANWHILE]
    execute(_SETTLE_ALL, [time_as_parameter(now), *words, as_parameter(session_id)])


def measured_ms(end_reason: str, duration_seconds: float) -> int | None:
    """Return for how many milliseconds the program ran; None if nobody measured it.

    A holder measures, and the program of a dead holder is lost. The host chooses the number.
    """
    if end_reason == "lost":
        return None
    return round(min(max(0.0, duration_seconds * 1000), _MAX_DURATION_MS))


def _ended_at(started_at: datetime | None, duration_seconds: float, now: datetime) -> datetime:
    """The end as the host measured it, if that is believable; else now.

    The report of the end may have waited for a connection.
    """
    if started_at is None or not 0 < duration_seconds < (now - started_at).total_seconds():
        return now
    return started_at + timedelta(seconds=duration_seconds)
