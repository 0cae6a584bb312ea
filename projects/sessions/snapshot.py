"""A session as it is committed at one moment: the one read on which all waiting callers decide."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from controller_client.protocol.messages import Stream
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.errors.commands import StartFailed
from projects.errors.sessions import SessionNotFound
from projects.errors.uncertain import StartLost
from projects.models.lifetime_clock import LifetimeClock
from projects.models.survivors import survivors_of
from projects.sessions.selectors import is_online
from projects.storage import clock
from projects.storage.columns import as_parameter, sql
from projects.storage.rows import fetch_row

_UNCONFIRMED_STATES: Final = frozenset({SessionState.PENDING, SessionState.SENT})
_NEVER_BEGAN: Final = frozenset({SessionState.START_FAILED, SessionState.EXPIRED})


class Snapshot(NamedTuple):
    """One session, its host, and one command of the outbox, as columns of one row.

    The fields are selected by their names (``_SOURCES`` lists those that are not columns of the
    session). Offsets are bytes of their stream. ``retained_bytes`` is None for as much as the
    settings say, ``host_duration_ms`` is how long the program ran as its host measured it, and
    ``command_*`` are None or empty without such a command.
    """

    kind: str
    state: str
    io_mode: str
    rows: int
    cols: int
    pid: int | None
    warning: str
    created_at: datetime
    touched_at: datetime
    ended_at: datetime | None
    cleared_at: datetime | None
    # the output
    stdout_first_offset: int
    stdout_next_offset: int
    stderr_first_offset: int
    stderr_next_offset: int
    shown_offset: int
    retained_bytes: int | None
    # the terminal, as its host saw it last
    terminal_state: str
    terminal_offset: int
    terminal_input_seq: int
    terminal_kind: str
    terminal_evidence: str
    terminal_prompt: str
    terminal_detail: str
    input_seq: int
    # the end
    exit_code: int | None
    signal: str
    end_reason: str
    ended_by: str
    failure_code: str
    failure_message: str
    host_duration_ms: int | None
    survivor_names: str | list[str]
    notes: str | list[str]
    # the clock of its lifetime
    started_at: datetime | None
    lifetime_seconds: float
    lifetime_ends_at: datetime | None
    paused_at: datetime | None
    pause_left_seconds: float | None
    # people and secrets
    taken_over_by: str
    handback_note: str
    sealed_secrets: bytes | memoryview | None
    # the host
    controller_id: UUID
    controller_name: str
    lease_expires_at: datetime | None
    # the command that was asked for
    command_input_seq: int | None
    command_settled_at: datetime | None
    command_failure_code: str
    command_failure_message: str

    @property
    def is_pending(self) -> bool:
        """True while the host has not said that the program started."""
        return self.state in _UNCONFIRMED_STATES

    @property
    def is_final(self) -> bool:
        """True if the session ended, or never began."""
        return self.state not in ACTIVE_STATES

    @property
    def has_never_begun(self) -> bool:
        """True if the host refused the start, or never took it."""
        return self.state in _NEVER_BEGAN

    @property
    def is_start_lost(self) -> bool:
        """True if the session is over and nobody ever said that the program began."""
        return self.state == SessionState.LOST and self.started_at is None

    @property
    def is_confirmed(self) -> bool:
        """True if the host said that the program began, or that it did not.

        A program whose start is not confirmed may run all the same.
        """
        return not self.is_pending and not self.is_start_lost

    @property
    def is_timed_out(self) -> bool:
        """True if the session was ended because its lifetime was over."""
        return self.state == SessionState.TIMED_OUT

    @property
    def is_waiting(self) -> bool:
        """True if the program waits for input and has printed nothing since the host saw that."""
        return (
            self.terminal_state == "awaiting_input"
            and self.state == SessionState.RUNNING
            and self.terminal_offset >= self.stdout_next_offset
        )

    @property
    def is_controller_online(self) -> bool:
        """True if the lease of the host has not expired."""
        return is_online(self.lease_expires_at)

    @property
    def is_command_settled(self) -> bool:
        """True if the host answered the command, or never will."""
        return self.command_settled_at is not None

    @property
    def ended_as(self) -> str | None:
        """The way in which the session ended; None while it is active.

        One of: exited, terminated, timed_out, lost, start_failed, expired.
        """
        return (self.end_reason or self.state.lower()) if self.is_final else None

    @property
    def survivors(self) -> tuple[str, ...] | None:
        """Processes, as ``name[pid]``, that outlived the session; None while that is not known."""
        return survivors_of(self.state, self.survivor_names, self.notes)

    @property
    def lifetime_clock(self) -> LifetimeClock:
        """The clock of the lifetime, as its host reported it last."""
        return LifetimeClock.of(self)

    @property
    def expires_at(self) -> datetime | None:
        """The moment at which the lifetime ends the session, if its clock runs on from now.

        None before the start and after the end.
        """
        return None if self.is_final else self.lifetime_clock.expires_at(clock.now())

    @property
    def age_ms(self) -> int:
        """Milliseconds from the call that made the session to its end, or to now."""
        return int(((self.ended_at or clock.now()) - self.created_at).total_seconds() * 1000)

    @property
    def duration_ms(self) -> int:
        """Milliseconds that the program ran: as its host measured, else from the call to the end.

        0 while the program runs.
        """
        if self.host_duration_ms is not None or self.ended_at is None:
            return self.host_duration_ms or 0
        return self.age_ms

    def first_offset(self, stream: Stream) -> int:
        """The offset before which the output of ``stream`` is gone."""
        return self.stdout_first_offset if stream == "stdout" else self.stderr_first_offset

    def next_offset(self, stream: Stream) -> int:
        """The offset before which the output of ``stream`` is stored, or gone."""
        return self.stdout_next_offset if stream == "stdout" else self.stderr_next_offset

    def check_begun(self) -> None:
        """Raises StartFailed or StartLost for a session that is over and never surely began."""
        if self.has_never_begun:
            problem = self.failure_message or "the host did not start the program"
            raise StartFailed(self.failure_code or self.state, problem)
        if self.is_start_lost:
            raise StartLost


_SOURCES: Final = {
    "host_duration_ms": "s.duration_ms",
    "survivor_names": "s.survivors",
    "controller_name": "c.name",
    "lease_expires_at": "c.lease_expires_at",
    "command_input_seq": "k.input_seq",
    "command_settled_at": "k.settled_at",
    "command_failure_code": "COALESCE(k.failure_code, '')",
    "command_failure_message": "COALESCE(k.failure_message, '')",
}
# Read several times in every turn: the ORM takes 0.3 ms to build and read the same statement, this
# takes 0.02 ms.
_COLUMNS: Final = ", ".join(_SOURCES.get(name, f"s.{name}") for name in Snapshot._fields)
_SNAPSHOT: Final = """
SELECT {columns}
FROM projects_commandsession s
JOIN projects_controller c ON c.id = s.controller_id
LEFT JOIN projects_controllercommand k ON {command}
WHERE s.id = %s AND s.project_id = %s
"""
_BY_INPUT: Final = sql(
    _SNAPSHOT, columns=_COLUMNS, command="k.session_id = s.id AND k.input_seq = %s"
)
_BY_COMMAND: Final = sql(
    _SNAPSHOT, columns=_COLUMNS, command="k.controller_id = s.controller_id AND k.seq = %s"
)


def session_snapshot(
    project_id: UUID, session_id: UUID, *, input_seq: int = 0, command_seq: int | None = None
) -> Snapshot:
    """The session now, with outbox command ``command_seq``, else with that of ``input_seq``.

    Raises SessionNotFound, also for a session of another project.
    """
    statement, number = (
        (_BY_INPUT, input_seq) if command_seq is None else (_BY_COMMAND, command_seq)
    )
    keys = [number, as_parameter(session_id), as_parameter(project_id)]
    snapshot = fetch_row(Snapshot, statement, keys)
    if snapshot is None:
        raise SessionNotFound(session_id)
    return snapshot
