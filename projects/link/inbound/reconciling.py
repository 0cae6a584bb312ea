"""Reconcile the sessions of a host with the database, when the host says HELLO.

A session may be in the database, on the host, or in both, and in different states. For each one
this decides whether it continues, is lost, is adopted from the host, or is ended there.
"""

from typing import Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from django.db import connection

from controller_client.protocol.messages import (
    Hello,
    SessionDirective,
    SessionFound,
    SessionSummary,
    Stream,
    StreamOffset,
)
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from controller_client.protocol.values import TELLS_FOUND
from projects.link.inbound.restored import Restored
from projects.link.inbound.stored_text import stored_id
from projects.link.inbound.twins import NOTE_UNKNOWN
from projects.models import CommandSession, ControllerCommand
from projects.models.survivors import NOTE_REBOOTED
from projects.sessions.outbox import START_TYPES
from projects.sessions.state import end_lost, ending_session, move_session
from projects.storage import clock
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_rows

_LIVE: Final = """
SELECT id, state, unnamed_seconds FROM projects_commandsession
WHERE controller_id = %s AND state IN (%s, %s, %s) ORDER BY id
"""
_SINCE: Final = clock.now()
"""The start of this process. If no other process writes to the database, newer rows are ours."""


class _Live(NamedTuple):
    id: UUID
    state: str
    unnamed_seconds: float


class Missing(NamedTuple):
    """The sessions that ran on the host by the database and that its HELLO did not name.

    ``lost``: the ids of those that are certain to be gone, and were ended. ``unnamed``: those that
    may belong to another daemon, of which this daemon is a copy.
    """

    lost: list[str]
    unnamed: frozenset[UUID]


class Host(NamedTuple):
    """The host that says HELLO.

    ``is_another``: its daemon has another state directory than the last one. ``is_ahead``: it has
    seen more of this server than the database knows. ``lock`` is the lock of its daemon,
    ``had_lock`` that of the daemon before; empty if it is not known.
    """

    id: UUID
    project_id: UUID
    name: str
    is_rebooted: bool
    is_another: bool
    is_ahead: bool
    had_lock: str
    lock: str


def reconcile(host: Host, message: Hello) -> tuple[Missing, list[SessionDirective]]:
    """Settle every session of the host, inside the transaction of HELLO.

    Returns the sessions that the host did not name, and one directive for each that it named.
    """
    restored = Restored((host.project_id, host.id), f"controller:{host.name}", since=_SINCE)
    summary_of = {summary.session_id: summary for summary in message.sessions}
    missing = _settle_live(host, summary_of, restored)
    if host.is_ahead:
        restored.ask_after_starts(message.last_cmd_seq)
    directives = _directives(host, message.sessions, restored)
    if TELLS_FOUND in message.capabilities:
        directives = _awaiting(message, directives)
    return missing, directives


def _settle_live(host: Host, summary_of: dict[str, SessionSummary], restored: Restored) -> Missing:
    """Go through the active sessions of the database.

    A session is lost if its program ran before the host was rebooted or its daemon replaced. A
    session that ran in this boot under this identity and is not named may belong to another daemon,
    of which this daemon is a copy: see ``twins``. So may one whose START another daemon was sent.
    """
    lock = " FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""
    states = [SessionState.RUNNING.value, SessionState.SENT.value, SessionState.PENDING.value]
    lost: list[str] = []
    unnamed: set[UUID] = set()
    live = list(fetch_rows(_Live, _LIVE + lock, [as_parameter(host.id), *states]))
    is_start_open = any(row.state == SessionState.SENT for row in live)
    kept = _kept_for_others(host) if is_start_open else frozenset[UUID]()
    for session_id, state, _ in live:
        summary = summary_of.get(str(session_id))
        if state != SessionState.RUNNING and summary is not None:
            _adopt_started(session_id, SessionState(state), summary)
        elif state == SessionState.PENDING or (
            state == SessionState.SENT and not (host.is_rebooted or host.is_another)
        ):
            # Its START is sent, now or again, and the host answers it; or it waits for the daemon
            # that was sent it.
            if session_id in kept:
                unnamed.add(session_id)
        elif (host.is_rebooted and (summary is None or summary.state != "done")) or (
            host.is_another and summary is None
        ):
            note = NOTE_REBOOTED if host.is_rebooted else NOTE_UNKNOWN
            end_lost(ending_session(session_id), actor=f"controller:{host.name}", note=note)
            lost.append(str(session_id))
        elif summary is None:
            unnamed.add(session_id)
            if host.is_ahead:
                restored.forgotten(session_id)
    named_again = [row.id for row in live if row.unnamed_seconds and row.id not in unnamed]
    if named_again:
        CommandSession.objects.filter(id__in=named_again).update(unnamed_seconds=0.0)
    return Missing(lost, frozenset(unnamed))


def _kept_for_others(host: Host) -> frozenset[UUID]:
    """Keep every START without an answer for the daemon that was sent it.

    Returns the sessions of those that are kept for another daemon than this one.
    """
    starts = ControllerCommand.objects.filter(
        controller_id=host.id, type__in=START_TYPES, settled_at__isnull=True
    )
    if host.had_lock not in ("", host.lock):
        starts.filter(sent_epoch__isnull=False, kept_for_lock="").update(
            kept_for_lock=host.had_lock
        )
    kept = starts.exclude(kept_for_lock__in=("", host.lock))
    return frozenset(kept.values_list("session_id", flat=True))


def _adopt_started(session_id: UUID, state: SessionState, summary: SessionSummary) -> None:
    """Settle the START of a session that the host has, although its STARTED never arrived.

    The START must neither expire nor be repeated. The session is PENDING if the database was
    restored from before the START was sent.
    """
    now = clock.now()
    starts = ControllerCommand.objects.filter(
        session_id=session_id, type__in=START_TYPES, settled_at__isnull=True
    )
    starts.update(settled_at=now, body=None)
    if state == SessionState.PENDING:
        move_session(session_id, state, SessionState.SENT)
    if summary.state == "running":
        move_session(
            session_id,
            SessionState.SENT,
            SessionState.RUNNING,
            pid=summary.pid,
            started_at=now,
        )


def _directives(
    host: Host, summaries: list[SessionSummary], restored: Restored
) -> list[SessionDirective]:
    named = [found for summary in summaries if (found := stored_id(summary.session_id))]
    known = CommandSession.objects.filter(controller_id=host.id, id__in=named)
    session_of = {str(row.id): row for row in (*known, *restored.adopt(summaries))}
    return [
        _directive(summary, session_of.get(summary.session_id), restored) for summary in summaries
    ]


def _awaiting(message: Hello, directives: list[SessionDirective]) -> list[SessionDirective]:
    """The directives, marked for the sessions whose holders are silent and awaited.

    It is not known yet how many inputs those holders have applied.
    """
    silent = {
        summary.session_id
        for summary in message.sessions
        if summary.state == "running" and not summary.streams
    }
    return [
        msgspec.structs.replace(
            directive, is_awaited=directive.action == "continue" and directive.session_id in silent
        )
        for directive in directives
    ]


def take_found(message: SessionFound) -> None:
    """Reconcile the inputs of a session whose holder was silent at HELLO and is found now.

    Runs inside the transaction that stores the frame.
    """
    session = CommandSession.objects.select_related("controller").get(id=message.session_id)
    if session.state in ACTIVE_STATES:
        about = (session.project_id, session.controller_id)
        Restored(about, f"controller:{session.controller.name}", since=_SINCE).catch_up(
            session, message.input_seq
        )


def _directive(
    summary: SessionSummary, session: CommandSession | None, restored: Restored
) -> SessionDirective:
    """Tell the host to continue, to terminate or to forget a session that it has.

    A session of another host must not go on running, nor a session that the server has given up.
    """
    if session is None:
        restored.refuse(summary)
        action: Literal["terminate", "forget"]
        action = "terminate" if summary.state == "running" else "forget"
        return SessionDirective(session_id=summary.session_id, action=action)
    is_unwanted = session.state not in ACTIVE_STATES and summary.state == "running"
    if is_unwanted:
        restored.audit(session.id, ended=session.state, host=summary.state)
    elif session.state in ACTIVE_STATES:
        restored.catch_up(session, summary.input_seq)
    offset_of: dict[Stream, int] = {"stdout": session.stdout_next_offset}
    # The host knows better: the STARTED that said pipes instead of a terminal may have been lost.
    has_stderr = any(position.stream == "stderr" for position in summary.streams)
    if has_stderr or session.io_mode == CommandSession.IoModeChoice.PIPE:
        offset_of["stderr"] = session.stderr_next_offset
    return SessionDirective(
        session_id=summary.session_id,
        action="terminate" if is_unwanted else "continue",
        expected=[
            StreamOffset(session_id=summary.session_id, stream=stream, offset=offset)
            for stream, offset in offset_of.items()
        ],
    )
