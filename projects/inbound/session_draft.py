"""One session while a batch is committed: what the database had, moved on by each message, written back once."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from controller_client.protocol.limits import MAX_CHUNK_BYTES
from controller_client.protocol.messages import Stream, StreamOffset
from controller_client.protocol.resume import StreamReceiver
from projects.output_log import NewChunk


class SessionDraft:
    """Pure: no database, no clock.

    The constructor takes id, state and then the columns that ``columns`` gives back, as ``batch`` reads them.
    """

    def __init__(self, row: Sequence[Any]) -> None:
        stdout_next_offset: int
        stderr_next_offset: int
        self.id = UUID(str(row[0]))
        self.key = str(self.id)
        self.state: str = row[1]
        stdout_next_offset, stderr_next_offset, self._last_chunk_seq, self._input_acked_seq = row[2:6]
        # state, kind, evidence, prompt, detail, offset, input_seq
        self._terminal: tuple[str | int, ...] = tuple(row[6:])
        self.is_changed = False
        self._receivers: dict[Stream, StreamReceiver] = {
            "stdout": StreamReceiver(stdout_next_offset, stream="stdout"),
            "stderr": StreamReceiver(stderr_next_offset, stream="stderr"),
        }
        self._pending: list[tuple[Stream, int, bytearray]] = []
        self._to_acknowledge: set[Stream] = set()

    def next_offset(self, stream: Stream) -> int:
        """Everything before it is stored, will be with this batch, or is a gap."""
        return self._receivers[stream].expected

    def take_output(self, stream: Stream, offset: int, data: bytes) -> bool:
        """True if any of it was new. Raises OffsetAhead or BadFrame, then nothing changed."""
        start, new = self._receivers[stream].accept(offset, data)
        if data:
            self._to_acknowledge.add(stream)
        if not new:
            return False
        self.is_changed = True
        if self._pending:
            # Many small frames that were committed together are one row: readers pay per row.
            last_stream, last_start, last = self._pending[-1]
            if last_stream == stream and last_start + len(last) == start and len(last) + len(new) <= MAX_CHUNK_BYTES:
                last += new
                return True
        self._pending.append((stream, start, bytearray(new)))
        return True

    def take_gap(self, stream: Stream, from_offset: int, to_offset: int) -> tuple[int, int] | None:
        """The part of the gap that is new, if any. Raises OffsetAhead or BadFrame, then nothing changed."""
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

    def take_verdict(self, *, state: str, kind: str, evidence: str, prompt: str, detail: str, offset: int, input_seq: int) -> bool:
        """True if the verdict is news: neither older than the one known, nor about output that is not here yet, nor the same."""
        known = self._terminal
        is_older = (input_seq, offset) < (known[6], known[5])
        if is_older or offset > self.next_offset("stdout"):
            return False
        new = (state, kind, evidence, prompt, detail, offset, input_seq)
        if new == known:
            return False
        self._terminal = new
        self.is_changed = True
        return True

    def chunks(self) -> list[NewChunk]:
        """What is to be stored, numbered on from the session's last chunk."""
        numbered = enumerate(self._pending, start=self._last_chunk_seq + 1)
        return [NewChunk(self.id, stream, start, seq, bytes(data)) for seq, (stream, start, data) in numbered]

    def columns(self) -> list[str | int]:
        """Offsets, chunk number, acknowledged input and verdict, as they are to be stored."""
        receivers = self._receivers
        numbers = [receivers["stdout"].expected, receivers["stderr"].expected, self._last_chunk_seq + len(self._pending)]
        return [*numbers, self._input_acked_seq, *self._terminal]

    def acks(self) -> list[StreamOffset]:
        """Where each stream that was heard of stands; also after a duplicate, whose first ACK may be lost."""
        return [StreamOffset(session_id=self.key, stream=s, offset=self._receivers[s].expected) for s in sorted(self._to_acknowledge)]
