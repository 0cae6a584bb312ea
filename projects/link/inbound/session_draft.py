"""One session during the commit of a batch: read once, changed by each frame, written back once."""

from typing import NamedTuple, Self
from uuid import UUID

from controller_client.protocol.limits import MAX_CHUNK_BYTES, MAX_DETAIL_CHARS, MAX_PROMPT_CHARS
from controller_client.protocol.messages import HostTime, Stream, StreamOffset, TerminalReport
from controller_client.protocol.resume import STEP_SECONDS, StreamReceiver
from controller_client.protocol.session_state import SessionState
from projects.link.inbound.stored_text import stored_text
from projects.output.log import NewChunk
from projects.output.recording.events import NewEvent


class TerminalVerdict(NamedTuple):
    """A report about the terminal: whether the program waits, for what, and how the host knows.

    ``offset`` is where the output ends that the verdict is about, ``input_seq`` the newest input
    that the program had been given. The fields are in the order of the columns of the session.
    """

    state: str
    kind: str
    evidence: str
    prompt: str
    detail: str
    offset: int
    input_seq: int

    @property
    def asked(self) -> tuple[str, str, str, str]:
        """The part of the verdict that a person who watches sees."""
        return self.state, self.kind, self.evidence, self.prompt

    @classmethod
    def of(cls, report: TerminalReport) -> Self:
        """The verdict in a report, with texts that are fit to be stored."""
        return cls(
            state=report.state,
            kind=report.kind or "",
            evidence=report.evidence or "",
            prompt=stored_text(report.prompt, MAX_PROMPT_CHARS),
            detail=stored_text(report.detail, MAX_DETAIL_CHARS),
            offset=report.offset,
            input_seq=report.input_seq,
        )


class SessionRow(NamedTuple):
    """The columns of a session and of its controller that ``batch`` reads, in their order."""

    id: UUID
    state: str
    stdout_next_offset: int
    stderr_next_offset: int
    last_chunk_seq: int
    input_acked_seq: int
    terminal_state: str
    terminal_kind: str
    terminal_evidence: str
    terminal_prompt: str
    terminal_detail: str
    terminal_offset: int
    terminal_input_seq: int
    epoch: int


class SessionDraft:
    """The session as it will be once the batch is committed. Pure: no database, no clock."""

    def __init__(self, row: SessionRow) -> None:
        self.id = row.id
        self.key = str(self.id)
        self.state = SessionState(row.state)
        self._last_chunk_seq = row.last_chunk_seq
        self._input_acked_seq = row.input_acked_seq
        self._verdict = TerminalVerdict(
            state=row.terminal_state,
            kind=row.terminal_kind,
            evidence=row.terminal_evidence,
            prompt=row.terminal_prompt,
            detail=row.terminal_detail,
            offset=row.terminal_offset,
            input_seq=row.terminal_input_seq,
        )
        self.is_changed = False
        self._receivers: dict[Stream, StreamReceiver] = {
            "stdout": StreamReceiver(row.stdout_next_offset, stream="stdout"),
            "stderr": StreamReceiver(row.stderr_next_offset, stream="stderr"),
        }
        self._pending: list[tuple[Stream, int, bytearray, HostTime | None]] = []
        self._events: list[NewEvent] = []
        self._to_acknowledge: set[Stream] = set()

    def become(self, state: SessionState) -> None:
        """The session's row was moved to ``state`` in this transaction."""
        self.state = state

    def next_offset(self, stream: Stream) -> int:
        """The offset up to which the stream is stored once this batch is, or has a gap."""
        return self._receivers[stream].expected

    def take_output(
        self, stream: Stream, offset: int, data: bytes, at: HostTime | None = None
    ) -> bool:
        """Take output that began ``at`` this moment, and return True if any of it was new.

        Raises OffsetAhead or BadFrame; then nothing changed.
        """
        start, new = self._receivers[stream].accept(offset, data)
        if data:
            self._to_acknowledge.add(stream)
        if not new:
            return False
        self.is_changed = True
        if self._pending:
            # Many small frames that were committed together are one row: readers pay per row.
            last_stream, last_start, last, last_at = self._pending[-1]
            if (
                last_stream == stream
                and last_start + len(last) == start
                and len(last) + len(new) <= MAX_CHUNK_BYTES
                and is_one_step(last_at, at)
            ):
                last += new
                return True
        self._pending.append((stream, start, bytearray(new), at))
        return True

    def take_gap(self, stream: Stream, from_offset: int, to_offset: int) -> tuple[int, int] | None:
        """Take a gap, and return the part of it that is new, or None.

        Raises OffsetAhead or BadFrame; then nothing changed.
        """
        new = self._receivers[stream].accept_gap(from_offset, to_offset)
        self._to_acknowledge.add(stream)
        if new is not None:
            self.is_changed = True
        return new

    def take_input_ack(self, input_seq: int) -> None:
        """Inputs up to ``input_seq`` have been answered."""
        if input_seq > self._input_acked_seq:
            self._input_acked_seq = input_seq
            self.is_changed = True

    def take_verdict(self, verdict: TerminalVerdict, at: HostTime | None = None) -> bool:
        """Takes ``verdict``, which was made ``at`` this moment, if it is news.

        Returns:
            False if it is older than the known one, about output that is not here yet, or the same.

        """
        known = self._verdict
        is_older = (verdict.input_seq, verdict.offset) < (known.input_seq, known.offset)
        if is_older or verdict.offset > self.next_offset("stdout") or verdict == known:
            return False
        if verdict.asked != known.asked:
            detail = dict(zip(("state", "kind", "evidence", "prompt"), verdict.asked, strict=True))
            self.add_event(NewEvent(self.id, "prompt", verdict.offset, detail=detail, at=at))
        self._verdict = verdict
        self.is_changed = True
        return True

    def add_event(self, event: NewEvent | None) -> None:
        """Store ``event``, if it is one, after those that were added before."""
        if event is not None:
            self._events.append(event)

    def take_events(self) -> list[NewEvent]:
        """Return the events to be stored now; they are the caller's from here on."""
        taken, self._events = self._events, []
        return taken

    def chunks(self) -> list[NewChunk]:
        """The new output to be stored, numbered on from the session's last chunk."""
        numbered = enumerate(self._pending, start=self._last_chunk_seq + 1)
        return [
            NewChunk(self.id, stream, start, seq, bytes(data), at)
            for seq, (stream, start, data, at) in numbered
        ]

    def columns(self) -> list[str | int]:
        """Offsets, chunk number, acknowledged input and verdict, as they are to be stored."""
        receivers = self._receivers
        numbers = [
            receivers["stdout"].expected,
            receivers["stderr"].expected,
            self._last_chunk_seq + len(self._pending),
        ]
        return [*numbers, self._input_acked_seq, *self._verdict]

    def acks(self) -> list[StreamOffset]:
        """The next offset of each stream that the host sent something of.

        A repeat is acknowledged as well: the first ACK may be lost.
        """
        return [
            StreamOffset(session_id=self.key, stream=s, offset=self._receivers[s].expected)
            for s in sorted(self._to_acknowledge)
        ]


def is_one_step(first: HostTime | None, at: HostTime | None) -> bool:
    """Return True if output of these times may be one row: a row has the time of its first byte."""
    return first is None or at is None or at.clock - first.clock < STEP_SECONDS


def gap_event(draft: SessionDraft, stream: Stream, start: int, end: int, reason: str) -> NewEvent:
    """Return the event of a gap that ``draft`` has taken."""
    detail = {"stream": stream, "from": start, "to": end, "reason": reason}
    return NewEvent(draft.id, "gap", draft.next_offset("stdout"), detail=detail)
