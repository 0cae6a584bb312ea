"""A session that is read by streams and offsets, as committed at the moment of the read: what the non-interactive families look at."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection

from controller_client.protocol.messages import Stream
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.dispatch import as_parameter, as_time
from projects.errors import SessionNotFound
from projects.selectors import is_online

NEVER_BEGAN: Final = frozenset({SessionState.START_FAILED, SessionState.EXPIRED})
_NOT_STARTED_YET: Final = frozenset({SessionState.PENDING, SessionState.SENT})


@dataclass(frozen=True, slots=True)
class CommandSnapshot:
    """Field order is the query's. ``retained_bytes`` None: as much as the settings say. ``host_duration_ms`` is as the host measured it."""

    kind: str
    state: str
    io_mode: str
    pid: int | None
    warning: str
    stdout_first_offset: int
    stdout_next_offset: int
    stderr_first_offset: int
    stderr_next_offset: int
    retained_bytes: int | None
    exit_code: int | None
    signal: str
    end_reason: str
    ended_by: str
    failure_code: str
    failure_message: str
    host_duration_ms: int | None
    created_at: datetime
    touched_at: datetime
    ended_at: datetime | None
    cleared_at: datetime | None
    lease_expires_at: datetime | None
    command_settled_at: datetime | None
    command_failure_code: str
    command_failure_message: str

    @property
    def is_pending(self) -> bool:
        """Its host has not said yet that it started."""
        return self.state in _NOT_STARTED_YET

    @property
    def is_final(self) -> bool:
        """The session ended, or never began."""
        return self.state not in ACTIVE_STATES

    @property
    def has_never_begun(self) -> bool:
        """Its host refused the start, or never took it."""
        return self.state in NEVER_BEGAN

    @property
    def is_timed_out(self) -> bool:
        """Its lifetime ran out."""
        return self.state == SessionState.TIMED_OUT

    @property
    def is_controller_online(self) -> bool:
        """Its host's lease runs."""
        return is_online(self.lease_expires_at)

    @property
    def duration_ms(self) -> int:
        """How long the program ran; where its host never said, from the call to the end."""
        if self.host_duration_ms is not None or self.ended_at is None:
            return self.host_duration_ms or 0
        return int((self.ended_at - self.created_at).total_seconds() * 1000)

    def first_offset(self, stream: Stream) -> int:
        """What is before it is gone."""
        return self.stdout_first_offset if stream == "stdout" else self.stderr_first_offset

    def next_offset(self, stream: Stream) -> int:
        """Everything before it is stored, or gone."""
        return self.stdout_next_offset if stream == "stdout" else self.stderr_next_offset


_SNAPSHOT: Final = """
SELECT s.kind, s.state, s.io_mode, s.pid, s.warning, s.stdout_first_offset, s.stdout_next_offset, s.stderr_first_offset,
       s.stderr_next_offset, s.retained_bytes, s.exit_code, s.signal, s.end_reason, s.ended_by, s.failure_code, s.failure_message,
       s.duration_ms, s.created_at, s.touched_at, s.ended_at, s.cleared_at, c.lease_expires_at, k.settled_at, k.failure_code,
       k.failure_message
FROM projects_commandsession s
JOIN projects_controller c ON c.id = s.controller_id
LEFT JOIN projects_controllercommand k ON k.controller_id = s.controller_id AND k.seq = %s
WHERE s.id = %s AND s.project_id = %s
"""


def command_snapshot(project_id: UUID, session_id: UUID, *, command_seq: int = 0) -> CommandSnapshot:
    """The session now, and what became of outbox command ``command_seq``. Raises SessionNotFound, also for another project's."""
    with connection.cursor() as cursor:
        cursor.execute(_SNAPSHOT, [command_seq, as_parameter(session_id), as_parameter(project_id)])
        row = cursor.fetchone()
    if row is None:
        raise SessionNotFound(session_id)
    times = [as_time(value) for value in row[17:23]]
    values: tuple[Any, ...] = (*row[:17], *times, row[23] or "", row[24] or "")
    return CommandSnapshot(*values)
