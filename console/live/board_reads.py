"""The reads of the board: every active session with the last line of its screen.

Runs in a database thread.
"""

from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from console.live.messages import Row
from console.live.session_reads import iso
from console.parts.words import waiting_for
from controller_client.protocol.terminal_text.unseen import without_controls
from controller_client.protocol.terminal_text.view import TextView
from projects.models.lifetime_clock import LifetimeClock
from projects.output import log as output_log
from projects.output.characters import length_of_rest
from projects.output.view import STDOUT
from projects.secrets.masks import mask_of
from projects.sessions.selectors import STATE_IS_ACTIVE
from projects.storage import clock
from projects.storage.columns import sql, time_as_parameter
from projects.storage.rows import execute, fetch_rows, typed

MAX_ROWS: Final = 1000
"""The board shows the newest sessions of each project, at most so many of all."""
TEXT_CHARS: Final = 300
_LAST_BYTES: Final = 1024

_ACTIVE: Final = sql(
    """
SELECT s.id, s.project_id, p.name, c.name, COALESCE(c.lease_expires_at > %s, FALSE), s.kind,
    s.state, s.command, s.started_by, s.created_at, s.taken_over_by, s.terminal_state,
    s.terminal_kind, s.terminal_prompt, s.stdout_next_offset, s.sealed_secrets, s.started_at,
    s.lifetime_seconds, s.lifetime_ends_at, s.paused_at, s.pause_left_seconds,
    (SELECT created_at FROM projects_outputchunk o WHERE o.session_id = s.id AND
        o.stream = 'stdout' ORDER BY o."offset" DESC LIMIT 1),
    EXISTS (SELECT 1 FROM projects_lifetimehold h WHERE h.session_id = s.id AND
        h.cause <> 'take_over'),
    EXISTS (SELECT 1 FROM projects_attentionevent a WHERE a.session_id = s.id AND
        a.resolved_at IS NULL AND (a.snoozed_until IS NULL OR a.snoozed_until <= %s))
FROM projects_commandsession s JOIN projects_controller c ON c.id = s.controller_id
    JOIN projects_project p ON p.id = s.project_id
WHERE s.id IN (SELECT id FROM (
    SELECT id, created_at, ROW_NUMBER() OVER (PARTITION BY project_id ORDER BY created_at DESC) nth
    FROM projects_commandsession WHERE {is_active}) ranked
    ORDER BY nth, created_at DESC LIMIT {most})
""",
    is_active=STATE_IS_ACTIVE,
    most=MAX_ROWS,
)

# The events of active sessions are in the rows of the board.
_ELSEWHERE: Final = sql(
    """
SELECT a.project_id, COUNT(*) FROM projects_attentionevent a
WHERE a.resolved_at IS NULL AND (a.snoozed_until IS NULL OR a.snoozed_until <= %s) AND NOT EXISTS (
    SELECT 1 FROM projects_commandsession s WHERE s.id = a.session_id AND s.{is_active})
GROUP BY a.project_id
""",
    is_active=STATE_IS_ACTIVE,
)


class Elsewhere(NamedTuple):
    """The number of events in a project that want a person, and are of no active session."""

    project_id: UUID
    events: int


class Active(NamedTuple):
    """An active session, its host and its project. The order is that of the statement."""

    id: UUID
    project_id: UUID
    project: str
    host: str
    is_online: bool
    kind: str
    state: str
    command: str
    started_by: str
    created_at: datetime
    operator: str
    terminal_state: str
    terminal_kind: str
    terminal_prompt: str
    next_offset: int
    sealed_secrets: bytes | memoryview | None
    started_at: datetime | None
    lifetime_seconds: float
    lifetime_ends_at: datetime | None
    paused_at: datetime | None
    pause_left_seconds: float | None
    printed_at: datetime | None
    is_asking: bool
    is_event: bool

    @property
    def lifetime(self) -> LifetimeClock:
        """The lifetime as the host last reported it."""
        return LifetimeClock.of(self)


class Known(NamedTuple):
    """A session as the board shows it, and what the database returned for it.

    ``version`` is that of the board when the session last changed. ``last_text`` is the end of what
    was printed, not yet masked: a secret may lie on two of its lines.
    """

    found: tuple[Any, ...]
    active: Active
    row: Row
    version: int
    last_text: str


def read_elsewhere() -> list[Elsewhere]:
    """Count the events of no active session: a start that waits, a host with an alarm."""
    return fetch_rows(Elsewhere, _ELSEWHERE, [time_as_parameter(clock.now())])


def read_board(before: dict[UUID, Known], version: int) -> dict[UUID, Known]:
    """All active sessions. What did not change since ``before`` is taken over from there."""
    # Most sessions are as they were. To compare what the database returned costs the least.
    earlier = {known.found[0]: known for known in before.values()}
    times = [time_as_parameter(clock.host_lease_now()), time_as_parameter(clock.now())]
    found = {}
    for raw in execute(_ACTIVE, times).fetchall():
        known = earlier.get(raw[0])
        if known is None or known.found != raw:
            known = _known(raw, known, version)
        found[known.active.id] = known
    return found


def _known(raw: tuple[Any, ...], known: Known | None, version: int) -> Known:
    active = typed(Active, raw)
    is_same = known is not None and known.active.next_offset == active.next_offset
    text = known.last_text if is_same and known else _last_text(active)
    row = _row(active, text)
    is_old = known is not None and row == known.row
    return Known(raw, active, row, known.version if is_old and known else version, text)


def _row(active: Active, text: str) -> Row:
    waits, group = _place(active)
    moment = clock.now()
    is_paused = active.lifetime.is_paused(moment)
    mask = mask_of(active.id, active.sealed_secrets)
    is_waiting = active.terminal_state == "awaiting_input"
    since = active.printed_at or active.started_at or active.created_at
    prompt = _short(mask.masked(active.terminal_prompt)) if is_waiting else ""
    shown = _last_line(mask.masked(text))
    return Row(
        id=str(active.id),
        group=group,
        waits=waits,
        doing=_doing(active, waits),
        host=active.host,
        project=active.project,
        kind=active.kind,
        command=_short(active.command),
        prompt=prompt,
        last_line="" if shown == prompt else shown,
        since=iso(since),
        started_by=f"by {_short(active.started_by)}" if active.started_by else "",
        ends_at="" if is_paused else iso(active.lifetime.expires_at(moment)),
        is_paused=is_paused,
    )


def _place(active: Active) -> tuple[str, str]:
    """The thing that a session waits for, and the group of the board that this is in."""
    is_waiting = active.terminal_state == "awaiting_input"
    waits = active.terminal_kind if is_waiting else ""
    if active.operator:
        waits = "taken"
    elif active.is_asking:
        waits = "approval"
    if not active.is_online:
        return waits, "away"
    if active.is_event or waits in ("secret", "approval", "taken"):
        return waits, "person"
    return waits, "agent" if waits else "works"


def _doing(active: Active, waits: str) -> str:
    """Say what the session waits for. The page adds for how long."""
    if waits == "taken":
        return f"{_short(active.operator)} types"
    return waiting_for(waits) if waits else "silent"


def _last_text(active: Active) -> str:
    """The end of what the program printed, without colours and cursor movements."""
    start = max(0, active.next_offset - _LAST_BYTES)
    data, _ = output_log.read_range(active.id, STDOUT, start, active.next_offset)
    view = TextView()
    view.feed(data[length_of_rest(None, data) :] if start else data, final=True)
    return view.text


def _last_line(text: str) -> str:
    lines = [line for line in text.split("\n") if line.strip()]
    return _short(lines[-1]) if lines else ""


def _short(text: str) -> str:
    """The text on one line, made visible: its beginning, if it is long."""
    return without_controls(" ".join(text[: 2 * TEXT_CHARS].split()))[:TEXT_CHARS]


def without_text(row: Row) -> Row:
    """The row for a person who may not see screens."""
    return msgspec.structs.replace(row, prompt="", last_line="")
