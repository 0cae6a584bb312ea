"""What a dead holder left in its session's directory, and what can still be told from it.

A holder keeps its lock for its whole life, so a lock we can take proves that it is dead; we keep it, so that none can
start late. ``done.json`` says how the program ended, if anybody lived to see it. Output that was only in the dead holder's
ring is gone, and is reported as a gap.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Literal, Self

from controller_client.one_shot import as_end
from controller_client.protocol.messages import Gap, InteractiveCmdDone, SessionSummary, Stream, StreamPosition
from controller_client.session_directory import SessionDirectory


class Remains:
    """A session without a holder. ``done`` is None as long as nobody has recorded its end."""

    def __init__(self, directory: SessionDirectory, lock: int) -> None:
        self.session_id = directory.session_id
        self.done = directory.read_done()
        self._directory = directory
        self._lock = lock

    @classmethod
    def claim(cls, directory: SessionDirectory) -> Self | None:
        """The remains in ``directory``; None while its holder lives. Raises FileNotFoundError if the session is gone, OSError."""
        lock = directory.lock()
        if lock is not None:
            return cls(directory, lock)
        if not directory.path.is_dir():
            raise FileNotFoundError(str(directory.path))
        return None

    def summary(self) -> SessionSummary:
        """The session as HELLO names it."""
        if self.done is None:
            return SessionSummary(session_id=self.session_id, state="lost", streams=[], input_seq=0)
        ends = [StreamPosition(stream=end.stream, first_offset=end.next_offset, next_offset=end.next_offset) for end in self.done.streams]
        state: Literal["lost", "done"] = "lost" if self.done.end_reason == "lost" else "done"
        return SessionSummary(session_id=self.session_id, state=state, streams=ends, input_seq=0)

    def record_loss(self, survivors: list[str]) -> None:
        """The program ended with its holder: keep that, and who survived it. Raises OSError."""
        done = InteractiveCmdDone(session_id=self.session_id, end_reason="lost", survivors=survivors, notes=["holder_died"])
        self.done = as_end(self._directory.read_start(), done)
        self._directory.write_done(self.done)

    def last_words(self, committed: Mapping[Stream, int]) -> Iterator[Gap | InteractiveCmdDone]:
        """What to tell a server that has ``committed``: the lost tail of each stream, then the end."""
        if self.done is None:
            return
        for end in self.done.streams:
            tail = committed.get(end.stream, 0)
            if tail < end.next_offset:
                yield Gap(session_id=self.session_id, stream=end.stream, from_offset=tail, to_offset=end.next_offset, reason="lost")
        yield self.done

    def release(self) -> None:
        """Let go of the lock; the directory stays for the next look."""
        os.close(self._lock)

    def remove(self) -> None:
        """Delete the directory: the session is forgotten."""
        self._directory.remove()
        self.release()
