"""A session ends: one way to write it down, whoever found out."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from django.db import connection

from controller_client.protocol.session_state import SessionState, check_transition
from projects import clock
from projects.audit_log import audit
from projects.direct_rows import row_update
from projects.dispatch import as_parameter, as_time, time_as_parameter
from projects.models import CommandSession

# Whatever was on its way to the program cannot reach it any more; bodies may hold secrets and go at once.
_SETTLE_ALL = """
UPDATE projects_controllercommand
SET settled_at = %s, body = NULL,
    failure_code = CASE WHEN type = 'SEND_INPUT' THEN 'SESSION_ENDED' ELSE failure_code END,
    failure_message = CASE WHEN type = 'SEND_INPUT' THEN 'the program ended before it could be typed' ELSE failure_message END
WHERE session_id = %s AND settled_at IS NULL
"""


_FIND = """
SELECT s.project_id, s.controller_id, s.state, s.started_at, s.ended_by, s.notes, c.name
FROM projects_commandsession s JOIN projects_controller c ON c.id = s.controller_id WHERE s.id = %s
"""


class Endable(Protocol):
    """What has to be known of a session to end it."""

    id: UUID
    project_id: UUID
    controller_id: UUID
    state: str
    started_at: datetime | None


@dataclass
class EndingSession:
    """The same, read in one short statement, and what its end is told from."""

    id: UUID
    project_id: UUID
    controller_id: UUID
    state: str
    started_at: datetime | None
    ended_by: str
    notes: list[str]
    controller_name: str


def ending_session(session_id: UUID) -> EndingSession:
    """The session that is about to end. Raises CommandSession.DoesNotExist."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [as_parameter(session_id)])
        row = cursor.fetchone()
    if row is None:
        raise CommandSession.DoesNotExist
    project_id, controller_id, state, started_at, ended_by, notes, name = row
    ids = (session_id, UUID(str(project_id)), UUID(str(controller_id)))
    return EndingSession(*ids, state, as_time(started_at), ended_by, json.loads(notes) if isinstance(notes, str) else notes, name)


def end_session(session: Endable, state: SessionState, *, actor: str, duration_seconds: float = 0.0, **fields: Any) -> None:
    """``session`` becomes ``state`` with ``fields``; its open commands are settled and the end is audited. Inside a transaction.

    ``session`` must have been read in that transaction. Raises IllegalTransition from a final state, changing nothing.
    """
    check_transition(SessionState(session.state), state)
    now = clock.now()
    fields = {"state": state.value, "ended_at": _ended_at(session.started_at, duration_seconds, now), **fields}
    row_update(CommandSession, session.id, **fields)
    settle_commands(session.id, now)
    detail = {
        "state": state.value,
        **{name: fields[name] for name in ("exit_code", "signal", "failure_code") if fields.get(name) is not None},
    }
    audit(actor, "session.end", (session.project_id, session.controller_id, session.id), detail)


def settle_commands(session_id: UUID, now: datetime) -> None:
    """Settles every open command of a session that is over."""
    with connection.cursor() as cursor:
        cursor.execute(_SETTLE_ALL, [time_as_parameter(now), as_parameter(session_id)])


def _ended_at(started_at: datetime | None, duration_seconds: float, now: datetime) -> datetime:
    """The end as the host measured it, where that is believable: the report may have waited for a connection."""
    if started_at is None or not 0 < duration_seconds < (now - started_at).total_seconds():
        return now
    return started_at + timedelta(seconds=duration_seconds)
