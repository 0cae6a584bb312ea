"""The reads of a watcher of one session: the session as it is, and its output from an offset on.

Runs in a database thread.
"""

import re
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from console.live.memory import Piece
from console.live.messages import Session
from console.live.person import Person
from console.parts.words import known_by, waiting_for
from console.templatetags.console import moment
from controller_client.protocol.messages import Stream
from controller_client.protocol.terminal_text.unseen import without_controls
from projects.audit.log import audit
from projects.errors.base import Forbidden
from projects.errors.sessions import SessionNotFound
from projects.models import CommandSession
from projects.models.lifetime_clock import LifetimeClock
from projects.output import log as output_log
from projects.output.log import GapRange
from projects.output.recording.timeline import STREAMS
from projects.output.view import STDOUT
from projects.output.window_start import rest_before_text
from projects.secrets.masks import mask_of
from projects.sessions.selectors import ACTIVE, is_online
from projects.storage import clock
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_row

READ_BYTES: Final = 64 * 1024
"""One look reads at most this much output."""
SCREEN_BYTES: Final = 256 * 1024
"""A screen is drawn from at most this much output before its end."""
PROMPT_CHARS: Final = 2000
_ALTERNATE: Final = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")

_NOW: Final = """
SELECT s.project_id, s.state, s.kind, s.io_mode, s.rows, s.cols, s.stdout_first_offset,
    s.stdout_next_offset, s.terminal_state, s.terminal_kind, s.terminal_evidence, s.terminal_prompt,
    s.taken_over_by, s.handback_note, s.sealed_secrets, s.started_at, s.lifetime_seconds,
    s.lifetime_ends_at, s.paused_at, s.pause_left_seconds, s.exit_code, s.signal, s.end_reason,
    s.ended_by, s.ended_at, c.lease_expires_at,
    (SELECT created_at FROM projects_outputchunk o WHERE o.session_id = s.id AND
        o.stream = 'stdout' ORDER BY o."offset" DESC LIMIT 1) AS printed_at,
    (SELECT failure_message FROM projects_controllercommand i WHERE i.session_id = s.id AND
        i.input_seq = s.input_acked_seq) AS input_error,
    (SELECT asked_by FROM projects_heldkeyboard k WHERE k.session_id = s.id) AS asked_by,
    s.stderr_next_offset
FROM projects_commandsession s JOIN projects_controller c ON c.id = s.controller_id
WHERE s.id = %s
"""


class Now(NamedTuple):
    """A session and its host as they are now. The order is that of the statement."""

    project_id: UUID
    state: str
    kind: str
    io_mode: str
    rows: int
    cols: int
    first_offset: int
    next_offset: int
    terminal_state: str
    terminal_kind: str
    terminal_evidence: str
    terminal_prompt: str
    taken_over_by: str
    handback_note: str
    sealed_secrets: bytes | memoryview | None
    started_at: datetime | None
    lifetime_seconds: float
    lifetime_ends_at: datetime | None
    paused_at: datetime | None
    pause_left_seconds: float | None
    exit_code: int | None
    signal: str
    end_reason: str
    ended_by: str
    ended_at: datetime | None
    lease_expires_at: datetime | None
    printed_at: datetime | None
    input_error: str | None
    asked_by: str | None
    stderr_next_offset: int

    @property
    def is_active(self) -> bool:
        """True until the program has ended."""
        return self.state in ACTIVE

    @property
    def lifetime(self) -> LifetimeClock:
        """The lifetime as the host last reported it."""
        return LifetimeClock.of(self)


class Look(NamedTuple):
    """One look at a session: the session, the end of its output, and what was read of that."""

    message: Session
    end: int
    pieces: list[Piece]


class Opened(NamedTuple):
    """A session that a person may look at: its project, and the streams of its output."""

    project_id: UUID
    streams: tuple[Stream, ...]


class Beginning(NamedTuple):
    """The place where a screen can be drawn from, and whether that is the alternate screen."""

    offset: int
    is_alternate: bool


def open_session(person: Person, session_id: UUID) -> Opened:
    """Put on record that a person looks at a session.

    Raises Forbidden, or SessionNotFound also for a session that the person may not see.
    """
    if not person.may_read:
        raise Forbidden("you may not see screens")
    session = (
        CommandSession.objects.filter(id=session_id)
        .only("project", "controller", "io_mode")
        .first()
    )
    if session is None or not person.sees(session.project_id):
        raise SessionNotFound(session_id)
    about = (session.project_id, session.controller_id, session_id)
    audit(person.actor, "transcript.view", about)
    is_terminal = session.io_mode == CommandSession.IoModeChoice.PTY
    return Opened(session.project_id, STREAMS[:1] if is_terminal else STREAMS)


def look(session_id: UUID, stream: Stream, offset: int) -> Look:
    """Look at the session, and read the output from ``offset`` on. Raises SessionNotFound."""
    now = fetch_row(Now, _NOW, [as_parameter(session_id)])
    if now is None:
        raise SessionNotFound(session_id)
    last = now.next_offset if stream == STDOUT else now.stderr_next_offset
    end = min(last, offset + READ_BYTES)
    return Look(_message(session_id, now), last, read(session_id, stream, offset, end))


def read(session_id: UUID, stream: Stream, offset: int, end: int) -> list[Piece]:
    """The output ``[offset, end)``, as far as it is stored."""
    pieces = []
    for found in output_log.pieces(session_id, stream, offset, end):
        if isinstance(found, GapRange):
            pieces.append(Piece(offset, found.to_offset, b"", found.reason))
        else:
            pieces.append(Piece(offset, offset + len(found), found))
        offset = pieces[-1].end
    return pieces


def beginning(session_id: UUID, stream: Stream, end: int) -> Beginning:
    """The place to begin at so that the screen at ``end`` is drawn: not inside of a sequence.

    Output before that place is not read, so a screen that was drawn before it and not since is not
    whole.
    """
    start = max(0, end - SCREEN_BYTES)
    if start == 0:
        return Beginning(0, False)
    data, gaps = output_log.read_range(session_id, stream, start, end)
    if gaps:
        return Beginning(start, False)
    start += rest_before_text(session_id, stream, start, data)
    first = _ALTERNATE.search(data)
    # The first switch leaves the alternate screen, so the program was on it before.
    return Beginning(start, first is not None and first[1] == b"l")


def _message(session_id: UUID, now: Now) -> Session:
    is_waiting = now.is_active and now.terminal_state == "awaiting_input"
    at = clock.now()
    # The end of a lifetime that is paused moves all the time, and would be news all the time.
    is_paused = now.lifetime.is_paused(at)
    mask = mask_of(session_id, now.sealed_secrets)
    prompt = mask.masked(now.terminal_prompt)[-PROMPT_CHARS:] if is_waiting else ""
    return Session(
        doing=without_controls(_doing(now, is_waiting=is_waiting)),
        known_by=known_by(now.terminal_evidence) if is_waiting else "",
        who=without_controls(_who(now)),
        is_active=now.is_active,
        may_type=now.is_active and now.kind == CommandSession.Kind.INTERACTIVE,
        rows=now.rows,
        cols=now.cols,
        kind=now.terminal_kind if is_waiting else "",
        prompt=without_controls(prompt),
        since=iso(now.printed_at) if is_waiting else "",
        operator=without_controls(now.taken_over_by),
        asks=without_controls(f"{now.asked_by} asks for the keyboard." if now.asked_by else ""),
        ends_at="" if is_paused or not now.is_active else iso(now.lifetime.expires_at(at)),
        is_paused=is_paused,
        input_error=without_controls(now.input_error or ""),
    )


def _doing(now: Now, *, is_waiting: bool) -> str:
    if not now.is_active:
        return f"ended: {_ended(now)}"
    away = "" if is_online(now.lease_expires_at) else "host away · "
    return away + (waiting_for(now.terminal_kind) if is_waiting else "works")


def _who(now: Now) -> str:
    """Name who has the keyboard, or give the note of who had it last."""
    if now.taken_over_by:
        return f"{now.taken_over_by} has the keyboard."
    return f"Handed back. {now.handback_note}" if now.handback_note and now.is_active else ""


def _ended(now: Now) -> str:
    code = "" if now.exit_code is None else f"exit code {now.exit_code}"
    parts = [now.end_reason or now.state.lower(), code, now.signal]
    by = f"by {now.ended_by}" if now.ended_by else ""
    return ", ".join(part for part in [*parts, by, now.ended_at and moment(now.ended_at)] if part)


def iso(at: datetime | None) -> str:
    """A time as JavaScript reads it; empty for none."""
    return "" if at is None else at.isoformat(timespec="seconds")
