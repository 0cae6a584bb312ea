"""Reads of hosts, sessions, monitors, and any range of a session's output.

Nothing is consumed, and no read is recorded.
"""

from datetime import datetime
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

from controller_client.protocol.messages import Stream
from projects.models import CommandSession, Controller, Monitor
from projects.output.stream_text import read_in_order
from projects.output.view import View, view_page, view_screen, view_turn
from projects.reads.results import (
    ControllerList,
    ControllerStatus,
    ListedMonitor,
    MonitorPage,
    Receipt,
    SessionDetails,
    SessionPage,
    SessionStatus,
)
from projects.sessions import selectors
from projects.sessions.answers.results import (
    OutputRange,
    TerminalResult,
    TerminalState,
)
from projects.sessions.snapshot import Snapshot, session_snapshot
from projects.sessions.transactions.acting import touch
from projects.sessions.turns import DEFAULT_OUTPUT_BYTES, terminal_result
from projects.sessions.waiting import clamped, watch
from projects.storage.access import at_length, in_database
from projects.wakeups import doorbells

TAIL_BYTES = 2048


async def controller_list(project_id: UUID) -> ControllerList:
    """The project's hosts, by name."""
    return await in_database(_controller_list, project_id)


async def session_list(
    project_id: UUID,
    *,
    active_only: bool = False,
    controller: str | None = None,
    limit: int = 20,
    before: datetime | None = None,
) -> SessionPage:
    """One page of the project's sessions, newest first.

    ``before``: ``next_before`` of the page before. Raises ControllerNotFound.
    """
    return await at_length(_session_list, project_id, active_only, controller, limit, before)


async def monitor_list(
    project_id: UUID, *, active_only: bool = True, limit: int = 20, before: datetime | None = None
) -> MonitorPage:
    """One page of the project's monitors, newest first.

    ``before``: ``next_before`` of the page before.
    """
    return await in_database(_monitor_list, project_id, active_only, limit, before)


async def session_get(
    project_id: UUID, session_id: UUID, *, ordered_bytes: int = 0
) -> SessionDetails:
    """State, newest output, and receipts of one session. Raises SessionNotFound.

    The newest ``ordered_bytes`` of both streams come in the order they were printed.
    """
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
) -> OutputRange:
    """The output from ``offset`` on, at most ``max_bytes``.

    Waits up to ``wait_seconds`` while there is none yet.

    An offset past the end gives empty output. Raises SessionNotFound.
    """
    read = partial(
        _read,
        project_id=project_id,
        session_id=session_id,
        offset=offset,
        max_bytes=max_bytes,
        view=view,
        stream=stream,
    )
    found = await at_length(read, wait_seconds <= 0)
    if found is not None:
        return found
    async with doorbells.session_doorbell(session_id) as bell:
        return await watch(bell, read, clamped(wait_seconds), look_first=True, is_long=True)


def _controller_list(project_id: UUID) -> ControllerList:
    listed = [
        ControllerStatus(
            id=controller.id,
            name=controller.name,
            online=selectors.is_online(controller.lease_expires_at),
            lease_expires_at=controller.lease_expires_at,
            os=controller.os,
            platform=controller.platform,
            hostname=controller.hostname,
            client_version=controller.client_version,
            log_roots=controller.log_roots,
        )
        for controller in Controller.objects.filter(project_id=project_id, revoked_at__isnull=True)
    ]
    return ControllerList(controllers=listed)


def _session_list(
    project_id: UUID, active_only: bool, controller: str | None, limit: int, before: datetime | None
) -> SessionPage:
    rows = CommandSession.objects.filter(project_id=project_id).select_related("controller")
    if active_only:
        rows = rows.filter(state__in=selectors.ACTIVE)
    if controller is not None:
        rows = rows.filter(controller_id=selectors.controller_for(project_id, controller).id)
    sessions, next_before = _page(rows, "created_at", limit, before)
    return SessionPage(sessions=[_status(row) for row in sessions], next_before=next_before)


def _monitor_list(
    project_id: UUID, active_only: bool, limit: int, before: datetime | None
) -> MonitorPage:
    rows = Monitor.objects.filter(project_id=project_id).select_related("controller")
    if active_only:
        rows = rows.filter(status=Monitor.Status.ACTIVE)
    monitors, next_before = _page(rows, "started_at", limit, before)
    listed = [
        ListedMonitor(
            session_id=row.session_id,
            status="active" if row.status == Monitor.Status.ACTIVE else "stopped",
            session_type=row.session_type,
            controller=row.controller.name,
            log_file=row.log_file,
            metadata=row.metadata,
            file_position=row.file_position,
            started_by=row.started_by,
            start_time=row.started_at,
            read_at=row.read_at,
        )
        for row in monitors
    ]
    return MonitorPage(monitors=listed, next_before=next_before)


Row = TypeVar("Row", bound=Model)


def _page(
    rows: QuerySet[Row], moment: str, limit: int, before: datetime | None
) -> tuple[list[Row], datetime | None]:
    """The newest rows by the column ``moment``, and ``before`` of the page that follows."""
    if before is not None:
        rows = rows.filter(**{f"{moment}__lt": before})
    page = list(rows.order_by(f"-{moment}")[:limit])
    return page, getattr(page[-1], moment) if len(page) == limit else None


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
    touch(session_id, session.touched_at)
    now = session_snapshot(project_id, session_id)
    start = max(0, now.stdout_next_offset - TAIL_BYTES)
    ends: dict[Stream, int] = {"stdout": now.stdout_next_offset, "stderr": now.stderr_next_offset}
    shown = view_turn(session_id, start, now.stdout_next_offset, TAIL_BYTES, is_final=True)
    terminal = terminal_result(
        TerminalResult, session_id, now, _state_of(now), start=start, shown=shown
    )
    return SessionDetails(
        **vars(_status(session)),
        prompt=terminal.prompt,
        activity=terminal.activity,
        tail=terminal.output,
        hint=terminal.hint,
        cwd=session.cwd,
        rows=session.rows,
        cols=session.cols,
        pid=session.pid,
        lifetime_seconds=session.lifetime_seconds,
        failure_code=session.failure_code or None,
        failure_message=session.failure_message or None,
        warning=session.warning or None,
        stderr_tail=_tail(session_id, "stderr", now.stderr_next_offset),
        survivors=now.survivors,
        notes=session.notes,
        is_transcript_verified=session.stdout_sha256_ok,
        receipts=[
            Receipt(
                at=event.created_at, actor=event.actor, action=event.action, detail=event.detail
            )
            for event in selectors.receipts_of(session_id)
        ],
        in_order=read_in_order(session_id, ends, ordered_bytes) if ordered_bytes else None,
    )


def _tail(session_id: UUID, stream: Stream, end: int) -> str:
    return view_page(
        session_id,
        max(0, end - TAIL_BYTES),
        end,
        TAIL_BYTES,
        is_final=True,
        view="text",
        stream=stream,
    ).text


def _read(
    is_last: bool,
    *,
    project_id: UUID,
    session_id: UUID,
    offset: int,
    max_bytes: int,
    view: View,
    stream: Stream,
) -> OutputRange | None:
    """None while there is nothing at ``offset`` yet and there may be."""
    now = session_snapshot(project_id, session_id)
    if now.kind == CommandSession.Kind.BACKGROUND:
        touch(session_id, selectors.session_of(project_id, session_id).touched_at)
    end = now.next_offset(stream)
    if end <= offset and not now.is_final and not is_last:
        return None
    if view == "screen":
        end = start = now.stdout_next_offset
        shown = view_screen(session_id, end, now.rows, now.cols)
    else:
        start = min(offset, end)
        shown = view_page(
            session_id, start, end, max_bytes, is_final=now.is_final, view=view, stream=stream
        )
    result = terminal_result(OutputRange, session_id, now, _state_of(now), start=start, shown=shown)
    return result.model_copy(update={"total_bytes": end})


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
