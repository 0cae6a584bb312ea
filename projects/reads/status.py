"""Reads of single sessions, and of any range of a session's output.

Nothing is consumed, and no read is recorded.
"""

from functools import partial
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects.models import CommandSession
from projects.output.stream_text import read_in_order
from projects.output.view import View, view_page, view_screen, view_turn
from projects.reads.lists import session_status, state_shown
from projects.reads.results import Receipt, SessionDetails
from projects.secrets.masks import mask_of
from projects.sessions import selectors
from projects.sessions.answers.results import (
    OutputRange,
    TerminalResult,
    TerminalState,
)
from projects.sessions.snapshot import Snapshot, session_snapshot
from projects.sessions.transactions.acting import touch
from projects.sessions.turns import DEFAULT_OUTPUT_BYTES, terminal_result
from projects.sessions.waiting import Cost, clamped, watch
from projects.storage.access import at_any_length, at_length
from projects.wakeups import doorbells

TAIL_BYTES = 2048


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
    is_open = view == "screen"
    found = await (at_any_length if is_open else at_length)(read, wait_seconds <= 0)
    if found is not None:
        return found
    async with doorbells.session_doorbell(session_id) as bell:
        cost: Cost = "open" if is_open else "long"
        return await watch(bell, read, clamped(wait_seconds), look_first=True, cost=cost)


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
        **vars(session_status(session, session.controller.name)),
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
            for event in selectors.receipts_of(project_id, session_id)
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
            session_id,
            start,
            end,
            max_bytes,
            is_final=now.is_final,
            view=view,
            stream=stream,
            mask=mask_of(session_id, now.sealed_secrets),
        )
    result = terminal_result(OutputRange, session_id, now, _state_of(now), start=start, shown=shown)
    return result.model_copy(update={"total_bytes": end})


def _state_of(now: Snapshot) -> TerminalState:
    return state_shown(
        now.state, is_waiting=now.is_waiting and now.terminal_input_seq >= now.input_seq
    )
