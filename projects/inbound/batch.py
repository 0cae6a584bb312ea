"""Many messages of one connection in one transaction. This is the hot path: every frame of output passes here.

Usually a batch is one frame, and costs three statements: read the sessions, insert the chunk, update the session. They are
written out; what happens once or twice in a session's life goes through the ORM.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from uuid import UUID

from django.db import connection, transaction

from controller_client.protocol.errors import OffsetAhead, RemoteProtocolError
from controller_client.protocol.limits import MAX_DETAIL_CHARS, MAX_PROMPT_CHARS
from controller_client.protocol.messages import (
    CommandAck,
    CommandResult,
    Failure,
    Gap,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Started,
    StreamOffset,
    TerminalReport,
    TerminateCmd,
)
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects import clock, dispatch, output_log
from projects.dispatch import as_parameter, time_as_parameter
from projects.inbound.ending import EndingSession, end_session, ending_session, settle_commands
from projects.inbound.refusals import Fenced, UnexpectedFrame, UnknownSession
from projects.inbound.session_draft import SessionDraft
from projects.inbound.stored_text import stored_list, stored_text
from projects.models import Controller

SessionMessage = Started | InteractiveOutput | Gap | InputAck | CommandAck | InteractiveCmdDone | CommandResult

MAX_NOTES: Final = 64
MAX_NOTE_CHARS: Final = 256
MAX_DURATION_MS: Final = 2.0**53
_END_STATES: Final = {
    "exited": SessionState.EXITED,
    "terminated": SessionState.TERMINATED,
    "timed_out": SessionState.TIMED_OUT,
    "lost": SessionState.LOST,
}
# Who ended it, where no caller did.
_ENDED_BY: Final = {"exited": "program", "timed_out": "lifetime", "lost": "host"}

_LOAD: Final = """
SELECT s.id, s.state, s.stdout_next_offset, s.stderr_next_offset, s.last_chunk_seq, s.input_acked_seq, s.terminal_state, s.terminal_kind,
       s.terminal_evidence, s.terminal_prompt, s.terminal_detail, s.terminal_offset, s.terminal_input_seq, c.epoch
FROM projects_commandsession s JOIN projects_controller c ON c.id = s.controller_id
WHERE s.controller_id = %s AND s.id IN ({places})
"""
_STORE: Final = """
UPDATE projects_commandsession
SET stdout_next_offset = %s, stderr_next_offset = %s, last_chunk_seq = %s, input_acked_seq = %s, terminal_state = %s, terminal_kind = %s,
    terminal_evidence = %s, terminal_prompt = %s, terminal_detail = %s, terminal_offset = %s, terminal_input_seq = %s
WHERE id = %s
"""
_RECORD_START: Final = "UPDATE projects_commandsession SET pid = %s, io_mode = %s, warning = %s{more} WHERE id = %s"
_RECORD_RUNNING: Final = _RECORD_START.format(more=", state = %s, started_at = %s")
_RECORD_HOW: Final = _RECORD_START.format(more="")
_SETTLE: Final = """
UPDATE projects_controllercommand SET settled_at = %s, body = NULL, failure_code = %s, failure_message = %s
WHERE controller_id = %s AND seq = %s AND session_id = %s AND settled_at IS NULL
"""


@dataclass
class BatchResult:
    """What the connection has to do after the commit.

    ``acks`` to send; ``dones`` to verify and acknowledge; ``forget``: ids to acknowledge at once; ``rings``: sessions whose waiters
    should look again; ``has_commands``: the outbox has something new; ``error``: why the connection is to be closed (what came
    before the bad message is committed, nothing after it).
    """

    acks: list[StreamOffset] = field(default_factory=list)
    dones: list[InteractiveCmdDone] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    rings: set[str] = field(default_factory=set)
    has_commands: bool = False
    error: RemoteProtocolError | None = None


def commit_batch(controller_id: UUID, epoch: int, messages: Sequence[SessionMessage]) -> BatchResult:
    """Commits ``messages`` in their order, in one transaction. Repeating a batch changes nothing.

    Raises Fenced when a newer connection took over.
    """
    with transaction.atomic():
        return _Batch(controller_id, epoch, messages).commit()


class _Batch:
    """One transaction's work: sessions are read once, changed in memory message by message, and written once."""

    def __init__(self, controller_id: UUID, epoch: int, messages: Sequence[SessionMessage]) -> None:
        self._controller_id = controller_id
        self._controller_key = as_parameter(controller_id)
        self._messages = messages
        self._result = BatchResult()
        self._drafts = self._load(epoch)

    def commit(self) -> BatchResult:
        try:
            for message in self._messages:
                self._handlers[type(message)](self, self._draft(message), message)
        except RemoteProtocolError as error:
            self._result.error = error
        self._store()
        return self._result

    def _load(self, epoch: int) -> dict[str, SessionDraft]:
        keys = [as_parameter(session_id) for session_id in {_parsed(message.session_id) for message in self._messages} if session_id]
        rows: list[tuple[Any, ...]] = []
        if keys:
            # Nobody else may move these sessions while we decide; SQLite has one writer anyway.
            lock = "FOR NO KEY UPDATE OF s" if connection.features.has_select_for_update else ""
            with connection.cursor() as cursor:
                cursor.execute(_LOAD.format(places=", ".join(["%s"] * len(keys))) + lock, [self._controller_key, *keys])
                rows = cursor.fetchall()
        current = rows[0][-1] if rows else Controller.objects.filter(id=self._controller_id).values_list("epoch", flat=True).first()
        if current != epoch:
            raise Fenced
        drafts = [SessionDraft(row[:-1]) for row in rows]
        return {draft.key: draft for draft in drafts}

    def _draft(self, message: SessionMessage) -> SessionDraft:
        draft = self._drafts.get(message.session_id)
        if draft is None:
            raise UnknownSession
        if draft.state == SessionState.PENDING:
            raise UnexpectedFrame(type(message).__name__, draft.state)
        return draft

    def _store(self) -> None:
        changed = [draft for draft in self._drafts.values() if draft.is_changed]
        output_log.append([chunk for draft in changed for chunk in draft.chunks()])
        with connection.cursor() as cursor:
            for draft in changed:
                cursor.execute(_STORE, [*draft.columns(), as_parameter(draft.id)])
        self._result.acks = [ack for draft in self._drafts.values() for ack in draft.acks()]

    # ---- one message each ----------------------------------------------------------------------------------------------

    def _on_output(self, draft: SessionDraft, message: InteractiveOutput) -> None:
        is_advanced = draft.take_output(message.stream, message.offset, message.data)
        if message.terminal is not None and _take_verdict(draft, message.terminal):
            is_advanced = True
        if is_advanced:
            self._result.rings.add(draft.key)

    def _on_gap(self, draft: SessionDraft, message: Gap) -> None:
        new = draft.take_gap(message.stream, message.from_offset, message.to_offset)
        if new is not None:
            output_log.add_gap(draft.id, message.stream, *new, message.reason)
            self._result.rings.add(draft.key)

    def _on_input_ack(self, draft: SessionDraft, message: InputAck) -> None:
        draft.take_input_ack(message.input_seq)
        self._settle(draft, message.command_seq, message.failure)
        # A caller waits for what the program makes of its input: the acknowledgement alone is news only if it is bad.
        if message.failure is not None:
            self._result.rings.add(draft.key)

    def _on_command_ack(self, draft: SessionDraft, message: CommandAck) -> None:
        self._settle(draft, message.command_seq, message.failure)
        self._result.rings.add(draft.key)

    def _on_started(self, draft: SessionDraft, message: Started) -> None:
        self._settle(draft, message.command_seq, None)
        if message.failure is not None:
            self._start_failed(draft, message.failure)
        elif draft.state == SessionState.SENT:
            self._record_start(draft, message, _RECORD_RUNNING, SessionState.RUNNING.value, time_as_parameter(clock.now()))
            draft.state = SessionState.RUNNING
        elif draft.state == SessionState.RUNNING:
            # HELLO may have told first that it runs, and knows neither how nor with which warning.
            self._record_start(draft, message, _RECORD_HOW)
        elif draft.state not in ACTIVE_STATES:
            self._terminate_stray(draft)
        self._result.rings.add(draft.key)

    def _record_start(self, draft: SessionDraft, message: Started, statement: str, *more: Any) -> None:
        warning = stored_text(message.warning or "", MAX_NOTE_CHARS)
        with connection.cursor() as cursor:
            cursor.execute(statement, [message.pid, message.io_mode, warning, *more, as_parameter(draft.id)])

    def _terminate_stray(self, draft: SessionDraft) -> None:
        """Its START was given up (EXPIRED) before the host said that it runs."""
        seq, _, _ = dispatch.allocate_seq(self._controller_id)
        message = TerminateCmd(seq=seq, session_id=draft.key)
        dispatch.enqueue(controller_id=self._controller_id, session_id=draft.id, message=message)
        self._result.has_commands = True

    def _start_failed(self, draft: SessionDraft, failure: Failure) -> None:
        # The host has nothing more to say about a program that never was, and forgets it.
        self._result.forget.append(draft.key)
        if draft.state != SessionState.SENT:
            return
        state = SessionState.EXPIRED if failure.code == "EXPIRED" else SessionState.START_FAILED
        why = {"failure_code": stored_text(failure.code, 32), "failure_message": _failure_text(failure)}
        self._end(draft, ending_session(draft.id), state, **why)

    def _on_done(self, draft: SessionDraft, message: InteractiveCmdDone) -> None:
        for final in message.streams:
            expected = draft.next_offset(final.stream)
            if final.next_offset > expected:
                raise OffsetAhead(final.stream, expected, final.next_offset)
        self._result.dones.append(message)
        if draft.state not in ACTIVE_STATES:
            settle_commands(draft.id, clock.now())
            return
        session = ending_session(draft.id)
        self._end(
            draft,
            session,
            _END_STATES[message.end_reason],
            duration_seconds=message.duration_seconds,
            duration_ms=round(min(max(0.0, message.duration_seconds * 1000), MAX_DURATION_MS)),
            end_reason=message.end_reason,
            # A caller who sent a signal that the program survived did not end it. Whom no caller ended, its host did (strict recording).
            ended_by=_ENDED_BY.get(message.end_reason) or session.ended_by or "host",
            exit_code=message.exit_code,
            signal=stored_text(message.signal or "", 16),
            survivors=stored_list(message.survivors, MAX_NOTES, MAX_NOTE_CHARS),
            notes=stored_list([*session.notes, *message.notes], MAX_NOTES, MAX_NOTE_CHARS),
        )

    def _end(self, draft: SessionDraft, session: EndingSession, state: SessionState, **fields: Any) -> None:
        end_session(session, state, actor=f"controller:{session.controller_name}", **fields)
        draft.state = state
        self._result.rings.add(draft.key)

    def _settle(self, draft: SessionDraft, seq: int, failure: Failure | None) -> None:
        now = time_as_parameter(clock.now())
        code, text = (stored_text(failure.code, 32), _failure_text(failure)) if failure else ("", "")
        with connection.cursor() as cursor:
            cursor.execute(_SETTLE, [now, code, text, self._controller_key, seq, as_parameter(draft.id)])

    _handlers: ClassVar[dict[type, Callable[["_Batch", SessionDraft, Any], None]]] = {
        InteractiveOutput: _on_output,
        Gap: _on_gap,
        InputAck: _on_input_ack,
        CommandAck: _on_command_ack,
        Started: _on_started,
        InteractiveCmdDone: _on_done,
        CommandResult: _on_done,
    }


def _take_verdict(draft: SessionDraft, report: TerminalReport) -> bool:
    return draft.take_verdict(
        state=report.state,
        kind=report.kind or "",
        evidence=report.evidence or "",
        prompt=stored_text(report.prompt, MAX_PROMPT_CHARS),
        detail=stored_text(report.detail, MAX_DETAIL_CHARS),
        offset=report.offset,
        input_seq=report.input_seq,
    )


def _failure_text(failure: Failure) -> str:
    suffix = f" ({failure.errno_name})" if failure.errno_name else ""
    return stored_text(failure.message + suffix, 1024)


def _parsed(session_id: str) -> UUID | None:
    try:
        return UUID(session_id)
    except ValueError:
        return None
