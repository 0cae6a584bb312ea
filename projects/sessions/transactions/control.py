"""The transactions that control a running program.

They signal it, end it, resize its terminal, give its keyboard to a person and take it back.
"""

from typing import Final
from uuid import UUID

from django.db import transaction

from controller_client.protocol.limits import TERMINATE_GRACE_SECONDS
from controller_client.protocol.messages import Resize, TerminateCmd
from controller_client.protocol.session_state import SessionState
from projects.accounts.authentication import Caller
from projects.attention.events import Cause, attention_raise
from projects.audit.log import audit
from projects.errors.inputs import ResizeRefused
from projects.errors.sessions import SessionTakenOver
from projects.models import AttentionKind, CommandSession, ControllerCommand, HeldKeyboard
from projects.output.recording import events
from projects.output.recording.events import NewEvent
from projects.sessions import lifetimes, outbox, selectors
from projects.sessions.idempotency import Done, Request
from projects.sessions.lifetimes import Told
from projects.sessions.state import move_session
from projects.sessions.transactions.acting import (
    Acted,
    actor_of,
    in_one_transaction,
    number_command,
    session_ended,
)
from projects.storage import clock

_WITHDRAWN_SEQ: Final = 0
"""On record in place of a command's number if a start was withdrawn; no command has it."""


@in_one_transaction
def terminate_session(
    project_id: UUID,
    session_id: UUID,
    actor: str,
    *,
    ended_by: str | None = None,
    signal_name: str = "SIGTERM",
    is_escalated: bool = True,
    request: Request | None = None,
) -> Acted:
    """Commit a TERMINATE_CMD, or withdraw a start that no host has been sent.

    A session that is over is left as it is. ``is_escalated``: the host kills what the signal
    leaves alive after a grace. Only then is the end asked for, and ``ended_by`` put on record in
    place of ``actor``: a program may take a plain signal and run on. Raises SessionNotFound.
    """
    ended_by = ended_by or actor
    if request is not None and (earlier := request.earlier()) is not None:
        is_withdrawn = earlier.command_seq == _WITHDRAWN_SEQ
        return Acted(
            session_id=session_id,
            from_offset=earlier.from_offset,
            command_seq=None if is_withdrawn else earlier.command_seq,
            is_new=False,
            is_withdrawn=is_withdrawn,
        )
    session = selectors.session_of(project_id, session_id)
    if SessionState(session.state).is_final:
        _record(request, session, command_seq=None)
        return _nothing_sent(session, is_withdrawn=False)
    about = (project_id, session.controller_id, session_id)
    if is_escalated and _withdraw_start(session, ended_by):
        audit(actor, "session.terminate", about, {"withdrawn": True})
        _record(request, session, command_seq=_WITHDRAWN_SEQ)
        return _nothing_sent(session, is_withdrawn=True)
    # Allowed while the host is away: the command waits for the host in the outbox.
    numbered = number_command(project_id, session_id, may_be_offline=True)
    controller_id, seq = numbered.controller_id, numbered.seq
    if is_escalated:
        active = CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE)
        active.update(ended_by=ended_by)
    to_ring = outbox.enqueue(
        controller_id=controller_id,
        session_id=session_id,
        message=TerminateCmd(
            seq=seq,
            session_id=str(session_id),
            signal=signal_name,
            escalate=is_escalated,
            grace_seconds=TERMINATE_GRACE_SECONDS,
        ),
    )
    detail = {} if is_escalated else {"signal": signal_name}
    if ended_by != actor:
        detail["reason"] = ended_by
    audit(actor, "session.terminate", about, detail)
    _record(request, session, command_seq=seq)
    return Acted(
        session_id=session_id,
        to_ring=to_ring,
        from_offset=session.shown_offset,
        input_seq=session.input_seq,
        command_seq=seq,
    )


def _record(request: Request | None, session: CommandSession, *, command_seq: int | None) -> None:
    if request is not None:
        done = Done(
            session_id=session.id,
            from_offset=session.shown_offset,
            command_seq=command_seq,
        )
        request.record(done)


def _nothing_sent(session: CommandSession, *, is_withdrawn: bool) -> Acted:
    return Acted(
        session_id=session.id,
        from_offset=session.shown_offset,
        input_seq=session.input_seq,
        is_new=False,
        is_withdrawn=is_withdrawn,
    )


def _withdraw_start(session: CommandSession, actor: str) -> bool:
    """Take an unsent START out of the outbox, so that the program never begins."""
    now = clock.now()
    unsent = ControllerCommand.objects.filter(
        session_id=session.id,
        sent_epoch__isnull=True,
        settled_at__isnull=True,
    )
    starts = unsent.filter(type__in=outbox.START_TYPES)
    if not starts.update(settled_at=now, body=None, failure_code="WITHDRAWN"):
        return False
    unsent.update(settled_at=now, body=None, failure_code="SESSION_ENDED")
    move_session(
        session.id,
        SessionState(session.state),
        SessionState.TERMINATED,
        ended_at=now,
        end_reason="terminated",
        ended_by=actor,
    )
    return True


@in_one_transaction
def resize_session(
    project_id: UUID,
    session_id: UUID,
    caller: Caller | None,
    *,
    rows: int,
    cols: int,
    request: Request | None,
) -> Acted:
    """Commit a RESIZE.

    Raises SessionNotFound, SessionEnded, SessionTakenOver if a person has the keyboard,
    ControllerOffline, or ResizeRefused for pipes.
    """
    if request is not None and (earlier := request.earlier()) is not None:
        return Acted(
            session_id=session_id,
            from_offset=earlier.from_offset,
            command_seq=earlier.command_seq,
            is_new=False,
        )
    numbered = number_command(project_id, session_id)
    controller_id, seq = numbered.controller_id, numbered.seq
    before = selectors.session_of(project_id, session_id)
    if before.taken_over_by not in ("", actor_of(caller)):
        raise SessionTakenOver(session_id, before.taken_over_by)
    if before.io_mode == CommandSession.IoModeChoice.PIPE:
        raise ResizeRefused("NOT_A_TERMINAL", "the program runs on pipes, which have no size")
    active = CommandSession.objects.filter(id=session_id, state__in=selectors.ACTIVE)
    is_resized = active.update(rows=rows, cols=cols)
    session = selectors.session_of(project_id, session_id)
    if not is_resized:
        raise session_ended(session)
    to_ring = outbox.enqueue(
        controller_id=controller_id,
        session_id=session_id,
        message=Resize(seq=seq, session_id=str(session_id), rows=rows, cols=cols),
        event={
            "actor": actor_of(caller),
            "rows": rows,
            "cols": cols,
            "from_rows": before.rows,
            "from_cols": before.cols,
        },
    )
    about = (project_id, controller_id, session_id)
    audit(actor_of(caller), "session.resize", about, {"rows": rows, "cols": cols})
    from_offset = session.stdout_next_offset
    if request is not None:
        request.record(Done(session_id=session_id, from_offset=from_offset, command_seq=seq))
    return Acted(
        session_id=session_id,
        to_ring=to_ring,
        from_offset=from_offset,
        command_seq=seq,
    )


# ---- takeover ------------------------------------------------------------------------------------


@transaction.atomic
def take_over(project_id: UUID, session_id: UUID, operator: str) -> Told | None:
    """Let only ``operator`` type from now on, and stop the clock of the session's lifetime.

    The keyboard may be taken from another operator. Returns the host to be rung; None for a host
    that cannot stop the clock, or may not. Raises SessionNotFound or SessionEnded.
    """
    session = selectors.session_of(project_id, session_id)
    told = lifetimes.hold(session, lifetimes.TAKE_OVER)
    HeldKeyboard.objects.filter(session_id=session_id).delete()
    _set_operator(session, taken_over_by=operator)
    about = (project_id, session.controller_id, session_id)
    events.append([NewEvent(session_id, "take_over", actor=operator)])
    audit(operator, "session.take_over", about, {"stops_clock": told is not None})
    if not session.taken_over_by:
        attention_raise(_taken_over(session, operator))
    return told


def _taken_over(session: CommandSession, operator: str) -> Cause:
    return Cause(
        kind=AttentionKind.TAKEN_OVER,
        key=f"taken_over:{session.id}:{clock.now().isoformat()}",
        project_id=session.project_id,
        controller_id=session.controller_id,
        session_id=session.id,
        detail={"operator": operator},
    )


@transaction.atomic
def hand_back(project_id: UUID, session_id: UUID, operator: str, note: str) -> Told | None:
    """Let callers type again, and start the clock again. ``note`` is shown to the callers.

    Returns the host to be rung, if the host is told of it. Raises SessionNotFound or SessionEnded.
    """
    session = selectors.session_of(project_id, session_id)
    told = lifetimes.release(session, lifetimes.TAKE_OVER)
    HeldKeyboard.objects.filter(session_id=session_id).delete()
    handback_note = f"{operator}: {note}" if note else f"{operator} typed here"
    _set_operator(session, taken_over_by="", handback_note=handback_note)
    about = (project_id, session.controller_id, session_id)
    detail = {"note": note} if note else {}
    events.append([NewEvent(session_id, "hand_back", actor=operator, detail=detail)])
    audit(operator, "session.hand_back", about, detail)
    return told


def _set_operator(session: CommandSession, **changes: str) -> None:
    """Raises SessionEnded, and SessionTakenOver if another operator was a moment earlier."""
    active = CommandSession.objects.filter(id=session.id, state__in=selectors.ACTIVE)
    if active.filter(taken_over_by=session.taken_over_by).update(**changes):
        return
    now = selectors.session_of(session.project_id, session.id)
    if active.exists():
        raise SessionTakenOver(session.id, now.taken_over_by)
    raise session_ended(now)
