"""Commits what a host sent: one batch of frames in one transaction.

**What a batch is.** The frames about sessions that the writer of one connection took out of its
queue (``projects.link.frame_writer``), in the order in which the host sent them. Usually that is
one frame of output, and costs three statements: read the session (on PostgreSQL lock it first, in
the same trip), insert the chunk, update the session. All output passes here, so these statements
are written by hand. What happens a few times in the life of a session goes through slower helpers.

**Why the writer joins frames.** Frames that arrive during a commit wait for the next one. Joined,
they share one commit, and each session is read and written once. Adjoining output becomes one row,
which makes every later read cheaper. A slow database thus gets larger batches instead of more work.

**What guards a batch.** ``_load`` locks the sessions until the commit, and then reads them together
with the epoch of their controller. Every accepted HELLO raises the epoch: the batch of a
connection that a newer one has replaced raises Fenced and changes nothing. Only sessions of the
controller itself are read, so a host cannot touch the sessions of another.

**What happens to each frame.** A frame changes the ``SessionDraft`` of its session in memory.

* Output and gaps move the offset of their stream. Bytes before that offset are repeats and are
  dropped; bytes beyond it raise OffsetAhead. A verdict about the terminal counts if it is neither
  older than the known one nor about output that is not here yet.
* STARTED settles the START and moves the session from SENT to RUNNING, START_FAILED or EXPIRED. If
  the server has given the session up meanwhile, the program is terminated.
* INPUT_ACK and COMMAND_ACK settle the command of their number, if it has their type and session.
* SESSION_FOUND comes from a holder that was silent at HELLO; its count of inputs is compared now.
* INTERACTIVE_CMD_DONE and COMMAND_RESULT end the session and settle what is still open. They are
  refused with OffsetAhead while output is missing, so an ended session has all of its output.

A frame that breaks the protocol ends the batch. The frames before it are committed, that frame and
those after it are not, and the connection is closed with ERROR.

**What is true after a crash** of the server or of the connection:

* before the commit: nothing has changed and nothing was acknowledged. The host sends it all again.
* after the commit, before ACK: the host sends it all again. The offsets and the settled commands
  say that it is known, nothing changes, and the host gets its ACK.
* after the commit, before the doorbells: callers that wait look again by themselves within a
  second.
* after ACK: the host may forget the bytes, and the database has them.
* after an end was committed, before DONE_ACK: the host reports the end again. It changes nothing
  more, and the digests of the streams are compared then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Unpack
from uuid import UUID

from django.db import connection

from controller_client.protocol.errors import BadFrame, OffsetAhead, RemoteProtocolError
from controller_client.protocol.messages import (
    CommandAck,
    CommandResult,
    Failure,
    Gap,
    HostTime,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    LifetimeReport,
    SessionFound,
    Started,
    StreamOffset,
    TerminateCmd,
)
from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.audit.log import audit
from projects.link.inbound.commands import settle_command, settle_input, settle_start
from projects.link.inbound.reconciling import take_found
from projects.link.inbound.refusals import Fenced, UnexpectedFrame, UnknownSession
from projects.link.inbound.restored import higher
from projects.link.inbound.session_draft import SessionDraft, SessionRow, TerminalVerdict, gap_event
from projects.link.inbound.stored_text import stored_failure, stored_id, stored_list, stored_text
from projects.models import CommandSession, Controller
from projects.output import log as output_log
from projects.output.recording import events
from projects.sessions import outbox
from projects.sessions.state import (
    EndingSession,
    SessionColumns,
    end_session,
    ended_by,
    ending_session,
    measured_ms,
    move_session,
    settle_commands,
)
from projects.storage import clock
from projects.storage.columns import as_parameter
from projects.storage.rows import execute, fetch_rows, row_update
from projects.storage.shared import one_transaction
from projects.wakeups.doorbells import Doorbell
from projects.wakeups.looks import LookFailed, take_looks

SessionMessage = (
    Started
    | InteractiveOutput
    | Gap
    | InputAck
    | CommandAck
    | SessionFound
    | InteractiveCmdDone
    | CommandResult
)

MAX_NOTES: Final = 64
MAX_NOTE_CHARS: Final = 256
_END_STATES: Final = {
    "exited": SessionState.EXITED,
    "terminated": SessionState.TERMINATED,
    "timed_out": SessionState.TIMED_OUT,
    "lost": SessionState.LOST,
}
# The party that is on record for an end which no caller asked for.
_ENDED_BY: Final = {"exited": "program", "timed_out": "lifetime", "lost": "host"}

_LOCK: Final = "SELECT 1 FROM projects_commandsession s WHERE {of} FOR NO KEY UPDATE"
_LOAD: Final = """
SELECT s.id, s.state, s.stdout_next_offset, s.stderr_next_offset, s.last_chunk_seq,
    s.input_acked_seq, s.terminal_state, s.terminal_kind, s.terminal_evidence, s.terminal_prompt,
    s.terminal_detail, s.terminal_offset, s.terminal_input_seq, c.epoch
FROM projects_commandsession s JOIN projects_controller c ON c.id = s.controller_id
WHERE {of}
"""
_STORE: Final = """
UPDATE projects_commandsession
SET stdout_next_offset = %s, stderr_next_offset = %s, last_chunk_seq = %s, input_acked_seq = %s,
    terminal_state = %s, terminal_kind = %s, terminal_evidence = %s, terminal_prompt = %s,
    terminal_detail = %s, terminal_offset = %s, terminal_input_seq = %s
WHERE id = %s
"""


@dataclass
class BatchResult:
    """The work that a commit leaves to its connection.

    ``acks`` are to be sent. ``dones`` are ends, to be verified and then acknowledged. ``forget``
    has ids of sessions to acknowledge at once, ``rings`` those whose waiting callers should look
    again; ``looked`` are the callers for whom the batch has looked. ``has_commands`` says that the
    outbox has something new.

    ``error`` is the reason to close the connection: a frame about ``error_session_id`` broke the
    protocol. The frames before that frame are committed.
    """

    acks: list[StreamOffset] = field(default_factory=list)
    dones: list[InteractiveCmdDone] = field(default_factory=list)
    forget: list[str] = field(default_factory=list)
    rings: set[str] = field(default_factory=set)
    looked: set[Doorbell] = field(default_factory=set)
    has_commands: bool = False
    error: RemoteProtocolError | None = None
    error_session_id: str = ""


def commit_batch(
    controller_id: UUID, epoch: int, messages: Sequence[SessionMessage]
) -> BatchResult:
    """Commit ``messages`` in their order, in one transaction. A repeat of a batch changes nothing.

    The callers of this process that wait for the sessions are handed what they wait for. Raises
    Fenced if a newer connection took over.
    """
    try:
        with one_transaction():
            result = _Batch(controller_id, epoch, messages).commit()
            result.looked = take_looks(result.rings)
            return result
    except LookFailed:
        # It took its transaction with it, but no frame. The callers look by themselves.
        with one_transaction():
            return _Batch(controller_id, epoch, messages).commit()


class _Batch:
    """The transaction: read sessions once, change them in memory by each message, write them."""

    def __init__(self, controller_id: UUID, epoch: int, messages: Sequence[SessionMessage]) -> None:
        self._controller_id = controller_id
        self._messages = messages
        self._result = BatchResult()
        self._drafts = self._load(epoch)

    def commit(self) -> BatchResult:
        for message in self._messages:
            try:
                self._take(self._draft(message), message)
            except RemoteProtocolError as error:
                self._result.error, self._result.error_session_id = error, message.session_id
                break
        self._store()
        return self._result

    def _load(self, epoch: int) -> dict[str, SessionDraft]:
        named = {stored_id(message.session_id) for message in self._messages}
        keys = [as_parameter(session_id) for session_id in named if session_id]
        rows: list[SessionRow] = []
        if keys:
            of = f"s.controller_id = %s AND s.id IN ({', '.join(['%s'] * len(keys))})"
            wanted = [as_parameter(self._controller_id), *keys]
            if connection.features.has_select_for_update:  # SQLite has one writer anyway.
                # By itself: a statement that has waited reads an epoch from before it waited.
                execute(_LOCK.format(of=of), wanted)
            rows = fetch_rows(SessionRow, _LOAD.format(of=of), wanted)
        current: int | None = rows[0].epoch if rows else None
        if not rows:  # None of the sessions is known. The epoch still decides which error that is.
            controller = Controller.objects.filter(id=self._controller_id)
            current = controller.values_list("epoch", flat=True).first()
        if current != epoch:
            raise Fenced
        return {draft.key: draft for draft in map(SessionDraft, rows)}

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
        events.append([event for draft in self._drafts.values() for event in draft.take_events()])
        for draft in changed:
            execute(_STORE, [*draft.columns(), as_parameter(draft.id)])
        self._result.acks = [ack for draft in self._drafts.values() for ack in draft.acks()]

    # ---- one message each ------------------------------------------------------------------------

    def _take(self, draft: SessionDraft, message: SessionMessage) -> None:
        match message:
            case InteractiveOutput():
                self._on_output(draft, message)
            case Gap():
                self._on_gap(draft, message)
            case InputAck():
                self._on_input_ack(draft, message)
            case CommandAck():
                self._on_command_ack(draft, message)
            case SessionFound():
                self._on_found(draft, message)
            case Started():
                self._on_started(draft, message)
            case InteractiveCmdDone():
                self._on_done(draft, message)

    def _on_output(self, draft: SessionDraft, message: InteractiveOutput) -> None:
        is_advanced = draft.take_output(message.stream, message.offset, message.data, message.at)
        if message.terminal is not None and draft.take_verdict(
            TerminalVerdict.of(message.terminal), message.terminal_at
        ):
            is_advanced = True
        if is_advanced:
            self._result.rings.add(draft.key)

    def _on_gap(self, draft: SessionDraft, message: Gap) -> None:
        new = draft.take_gap(message.stream, message.from_offset, message.to_offset)
        if new is not None:
            output_log.add_gap(draft.id, message.stream, *new, message.reason)
            draft.add_event(gap_event(draft, message.stream, *new, message.reason))
            if message.reason == "restored":
                session = ending_session(draft.id)
                about = (session.project_id, session.controller_id, draft.id)
                audit(
                    f"controller:{session.controller_name}",
                    "session.restored",
                    about,
                    {"output": [message.stream, *new]},
                )
            self._result.rings.add(draft.key)

    def _on_input_ack(self, draft: SessionDraft, message: InputAck) -> None:
        draft.take_input_ack(message.input_seq)
        draft.add_event(settle_input(self._controller_id, draft.id, message))
        # A caller waits for the program's answer to its input, so only a refusal is news.
        if message.failure is not None:
            self._result.rings.add(draft.key)

    def _on_command_ack(self, draft: SessionDraft, message: CommandAck) -> None:
        draft.add_event(settle_command(self._controller_id, draft.id, message))
        if message.lifetime is not None:
            row_update(CommandSession, draft.id, **_clock_columns(message.lifetime))
        self._result.rings.add(draft.key)

    def _on_found(self, draft: SessionDraft, message: SessionFound) -> None:
        # The draft writes its own count of inputs last, so it has to know this one as well.
        take_found(message)
        draft.take_input_ack(higher(0, message.input_seq))
        self._result.has_commands = True
        self._result.rings.add(draft.key)

    def _on_started(self, draft: SessionDraft, message: Started) -> None:
        settle_start(self._controller_id, draft.id, message.command_seq)
        if message.failure is not None:
            self._start_failed(draft, message.failure)
        elif draft.state == SessionState.SENT:
            how = _start_columns(message)
            how["started_at"] = clock.now()
            move_session(draft.id, draft.state, SessionState.RUNNING, **how)
            draft.become(SessionState.RUNNING)
        elif draft.state == SessionState.RUNNING:
            # HELLO may have reported first that it runs. HELLO knows no I/O mode and no warning.
            row_update(CommandSession, draft.id, **_start_columns(message))
        elif draft.state not in ACTIVE_STATES:
            self._terminate_stray(draft)
        self._result.rings.add(draft.key)

    def _terminate_stray(self, draft: SessionDraft) -> None:
        """Tell the host to end a program whose session was given up before it was reported."""
        seq = outbox.allocate_seq(self._controller_id)
        message = TerminateCmd(seq=seq, session_id=draft.key)
        to_ring = outbox.enqueue(
            controller_id=self._controller_id, session_id=draft.id, message=message
        )
        self._result.has_commands |= to_ring is not None

    def _start_failed(self, draft: SessionDraft, failure: Failure) -> None:
        # There will be no more reports about a program that never began: the host may forget it.
        self._result.forget.append(draft.key)
        if draft.state != SessionState.SENT:
            return
        state = SessionState.EXPIRED if failure.code == "EXPIRED" else SessionState.START_FAILED
        code, text = stored_failure(failure)
        session = ending_session(draft.id)
        self._end(draft, session, state, failure_code=code, failure_message=text)

    def _on_done(self, draft: SessionDraft, message: InteractiveCmdDone) -> None:
        if len({final.stream for final in message.streams}) < len(message.streams):
            raise BadFrame("an end names a stream twice")
        for final in message.streams:
            if final.next_offset > (expected := draft.next_offset(final.stream)):
                raise OffsetAhead(final.stream, expected, final.next_offset)
        self._result.dones.append(message)
        if draft.state not in ACTIVE_STATES:
            settle_commands(draft.id, clock.now())
            return
        session, died_of = ending_session(draft.id), stored_text(message.signal or "", 16)
        self._end(
            draft,
            session,
            _END_STATES[message.end_reason],
            duration_seconds=message.duration_seconds,
            at=message.at,
            duration_ms=measured_ms(message.end_reason, message.duration_seconds),
            end_reason=message.end_reason,
            ended_by=_ENDED_BY.get(message.end_reason) or ended_by(session, died_of),
            exit_code=message.exit_code,
            signal=died_of,
            survivors=stored_list(message.survivors, MAX_NOTES, MAX_NOTE_CHARS),
            notes=stored_list([*session.notes, *message.notes], MAX_NOTES, MAX_NOTE_CHARS),
        )

    def _end(
        self,
        draft: SessionDraft,
        session: EndingSession,
        state: SessionState,
        *,
        duration_seconds: float = 0.0,
        at: HostTime | None = None,
        **columns: Unpack[SessionColumns],
    ) -> None:
        actor = f"controller:{session.controller_name}"
        events.append(draft.take_events())  # they come before the end
        end_session(
            session,
            state,
            actor=actor,
            duration_seconds=duration_seconds,
            at=at,
            offset=draft.next_offset("stdout"),
            **columns,
        )
        draft.become(state)
        self._result.rings.add(draft.key)


def _start_columns(message: Started) -> SessionColumns:
    """The columns that say how the host started a program."""
    warning = stored_text(message.warning or "", MAX_NOTE_CHARS)
    clock_columns = _clock_columns(message.lifetime)
    return {"pid": message.pid, "io_mode": message.io_mode, "warning": warning, **clock_columns}


def _clock_columns(report: LifetimeReport | None) -> SessionColumns:
    """The columns of the lifetime's clock; all None if the host does not report the clock."""
    if report is None:
        return {"lifetime_ends_at": None, "paused_at": None, "pause_left_seconds": None}
    now = clock.now()
    return {
        "lifetime_ends_at": now + timedelta(seconds=report.left_seconds),
        "paused_at": now if report.is_paused else None,
        "pause_left_seconds": report.pause_left_seconds,
    }
