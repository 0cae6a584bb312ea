"""What callers can look at, without a trace: controllers, sessions, and any range of a session's output. Nothing is consumed."""

from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects import dispatch, selectors, session_actions
from projects.database import at_length, in_database
from projects.models import CommandSession
from projects.output_view import view_page, view_screen, view_turn
from projects.results import InteractiveOutputResult, TerminalState, View
from projects.selectors import Snapshot
from projects.stream_text import OrderedPiece, read_in_order
from projects.turns import DEFAULT_OUTPUT_BYTES, terminal_result
from projects.watching import clamped, watch

TAIL_BYTES = 2048


@dataclass(frozen=True, kw_only=True)
class ControllerStatus:
    """An enrolled host; it is online while its lease runs."""

    id: UUID
    name: str
    is_online: bool
    lease_expires_at: datetime | None
    os: str
    platform: str
    hostname: str
    client_version: str


@dataclass(frozen=True, kw_only=True)
class SessionStatus:
    """One session in a list. ``lifecycle`` is its state in the session table, such as RUNNING or TIMED_OUT."""

    session_id: UUID
    controller: str
    kind: str
    command: str
    state: TerminalState
    lifecycle: str
    prompt_kind: str | None
    started_by: str
    created_at: datetime
    ended_at: datetime | None
    exit_code: int | None
    signal: str | None
    end_reason: str | None
    ended_by: str | None
    total_bytes: int


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Something that was done to a session, and by whom."""

    at: datetime
    actor: str
    action: str
    detail: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SessionDetails:
    """Everything about one session: ``terminal.output`` is its newest output."""

    status: SessionStatus
    terminal: InteractiveOutputResult
    cwd: str
    rows: int
    cols: int
    pid: int | None
    lifetime_seconds: float
    failure_code: str | None
    failure_message: str | None
    warning: str | None
    stderr_tail: str
    survivors: tuple[str, ...]
    notes: tuple[str, ...]
    is_transcript_verified: bool | None
    receipts: tuple[Receipt, ...]
    in_order: tuple[OrderedPiece, ...] | None


async def controller_list(project_id: UUID) -> list[ControllerStatus]:
    """The project's hosts, by name."""
    return await in_database(_controller_list, project_id)


async def session_list(
    project_id: UUID, *, active_only: bool = False, controller: str | None = None, limit: int = 20, before: datetime | None = None
) -> list[SessionStatus]:
    """The project's sessions, newest first; ``before`` (the ``created_at`` of the last one) gives the next page."""
    return await at_length(_session_list, project_id, active_only, controller, limit, before)


async def session_get(project_id: UUID, session_id: UUID, *, ordered_bytes: int = 0) -> SessionDetails:
    """State, newest output, and receipts of one session; the newest ``ordered_bytes`` of both streams in order. Raises SessionNotFound."""
    return await at_length(_session_get, project_id, session_id, ordered_bytes)


async def session_read_output(
    project_id: UUID,
    session_id: UUID,
    *,
    offset: int = 0,
    max_bytes: int = DEFAULT_OUTPUT_BYTES,
    view: View = "text",
    stream: Stream = "stdout",
    wait_seconds: float = 0.0,
) -> InteractiveOutputResult:
    """The output from ``offset`` on, at most ``max_bytes``; waits up to ``wait_seconds`` while there is none yet.

    An offset past the end gives empty output. Raises SessionNotFound.
    """
    read = partial(_read, project_id=project_id, session_id=session_id, offset=offset, max_bytes=max_bytes, view=view, stream=stream)
    found = await at_length(read, wait_seconds <= 0)
    if found is not None:
        return found
    async with dispatch.session_doorbell(session_id) as bell:
        return await watch(bell, read, clamped(wait_seconds), look_first=True, is_long=True)


def _controller_list(project_id: UUID) -> list[ControllerStatus]:
    return [
        ControllerStatus(
            id=controller.id,
            name=controller.name,
            is_online=selectors.is_online(controller.lease_expires_at),
            lease_expires_at=controller.lease_expires_at,
            os=controller.os,
            platform=controller.platform,
            hostname=controller.hostname,
            client_version=controller.client_version,
        )
        for controller in selectors.controllers_of(project_id)
    ]


def _session_list(project_id: UUID, active_only: bool, controller: str | None, limit: int, before: datetime | None) -> list[SessionStatus]:
    controller_id = selectors.controller_for(project_id, controller).id if controller is not None else None
    sessions = selectors.sessions_of(project_id, active_only=active_only, controller_id=controller_id, limit=limit, before=before)
    return [_status(session) for session in sessions]


def _status(session: CommandSession) -> SessionStatus:
    state = _state(session.state, is_waiting=_is_waiting(session))
    is_over = state == "exited"
    return SessionStatus(
        session_id=session.id,
        controller=session.controller.name,
        kind=session.kind,
        command=session.command,
        state=state,
        lifecycle=session.state,
        prompt_kind=session.terminal_kind if state == "awaiting_input" else None,
        started_by=session.started_by,
        created_at=session.created_at,
        ended_at=session.ended_at,
        exit_code=session.exit_code,
        signal=session.signal or None,
        end_reason=(session.end_reason or session.state.lower()) if is_over else None,
        ended_by=(session.ended_by or None) if is_over else None,
        total_bytes=session.stdout_next_offset,
    )


def _session_get(project_id: UUID, session_id: UUID, ordered_bytes: int) -> SessionDetails:
    session = selectors.session_of(project_id, session_id)
    session_actions.touch(session_id, session.touched_at)
    now = selectors.session_snapshot(project_id, session_id)
    start = max(0, now.stdout_next_offset - TAIL_BYTES)
    ends: dict[Stream, int] = {"stdout": now.stdout_next_offset, "stderr": now.stderr_next_offset}
    shown = view_turn(session_id, start, now.stdout_next_offset, TAIL_BYTES, is_final=True)
    return SessionDetails(
        status=_status(session),
        terminal=terminal_result(session_id, now, _state_of(now), start, shown),
        cwd=session.cwd,
        rows=session.rows,
        cols=session.cols,
        pid=session.pid,
        lifetime_seconds=session.lifetime_seconds,
        failure_code=session.failure_code or None,
        failure_message=session.failure_message or None,
        warning=session.warning or None,
        stderr_tail=_tail(session_id, "stderr", now.stderr_next_offset),
        survivors=tuple(session.survivors),
        notes=tuple(session.notes),
        is_transcript_verified=session.stdout_sha256_ok,
        receipts=tuple(
            Receipt(at=event.created_at, actor=event.actor, action=event.action, detail=event.detail)
            for event in selectors.receipts_of(session_id)
        ),
        in_order=tuple(read_in_order(session_id, ends, ordered_bytes)) if ordered_bytes else None,
    )


def _tail(session_id: UUID, stream: Stream, end: int) -> str:
    return view_page(session_id, max(0, end - TAIL_BYTES), end, TAIL_BYTES, is_final=True, view="text", stream=stream).output


def _read(
    is_last: bool, *, project_id: UUID, session_id: UUID, offset: int, max_bytes: int, view: View, stream: Stream
) -> InteractiveOutputResult | None:
    """None while there is nothing at ``offset`` yet and there may be."""
    now = selectors.session_snapshot(project_id, session_id)
    if now.kind == CommandSession.Kind.BACKGROUND:
        session_actions.touch(session_id, selectors.session_of(project_id, session_id).touched_at)
    end = now.next_offset(stream)
    if end <= offset and not now.is_final and not is_last:
        return None
    if view == "screen":
        end = start = now.stdout_next_offset
        shown = view_screen(session_id, end, now.rows, now.cols)
    else:
        start = min(offset, end)
        shown = view_page(session_id, start, end, max_bytes, is_final=now.is_final, view=view, stream=stream)
    return replace(terminal_result(session_id, now, _state_of(now), start, shown), total_bytes=end)


def _state_of(now: Snapshot) -> TerminalState:
    return _state(now.state, is_waiting=now.is_waiting and now.terminal_input_seq >= now.input_seq)


def _state(lifecycle: str, *, is_waiting: bool) -> TerminalState:
    if lifecycle not in selectors.ACTIVE:
        return "exited"
    return "awaiting_input" if is_waiting else "running"


def _is_waiting(session: CommandSession) -> bool:
    return (
        session.state == "RUNNING"
        and session.terminal_state == "awaiting_input"
        and session.terminal_offset >= session.stdout_next_offset
        and session.terminal_input_seq >= session.input_seq
    )
