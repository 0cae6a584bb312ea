"""A session whose holder is dead: its directory's records, and the lock that proves the death.

A holder keeps the lock of its session's directory for its whole life. So a daemon that gets the
lock knows that the holder is dead, and while the daemon keeps the lock no other holder can start.
``done.json`` says how the program ended, if the holder lived to see that. Output that only the dead
holder had in memory is gone, and is reported as a gap.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final, Literal, Self

from controller_client.protocol.messages import (
    Gap,
    InteractiveCmdDone,
    SessionSummary,
    Stream,
    StreamPosition,
)
from controller_client.protocol.values import NOTE_NOTHING_LEFT
from controller_client.session_files.directory import SessionDirectory
from controller_client.session_files.one_shot import as_end

NOTE_HOLDER_DIED: Final = "holder_died"


class DeadHolder:
    """The claimed directory of a session. ``done`` is None until the session's end is on record."""

    def __init__(self, directory: SessionDirectory, lock: int) -> None:
        self.session_id = directory.session_id
        self._directory = directory
        self._lock = lock
        self.done: InteractiveCmdDone | None = None

    @classmethod
    def claim(cls, directory: SessionDirectory) -> Self | None:
        """Take the lock of ``directory``; None while a holder has it.

        Raises FileNotFoundError if the directory is gone, OSError if that cannot be told now.
        """
        lock = directory.lock()
        if lock is None:
            if not directory.path.is_dir():
                raise FileNotFoundError(str(directory.path))
            return None
        found = cls(directory, lock)
        try:
            found.done = directory.read_done()
        except BaseException:
            # There may be a record of the end. The session may be called lost only after a read has
            # shown that there is none.
            found.release()
            raise
        return found

    def summary(self) -> SessionSummary:
        """Summarise the session for HELLO."""
        if self.done is None:
            return SessionSummary(session_id=self.session_id, state="lost", streams=[], input_seq=0)
        ends = [
            StreamPosition(
                stream=end.stream, first_offset=end.next_offset, next_offset=end.next_offset
            )
            for end in self.done.streams
        ]
        state: Literal["lost", "done"] = "lost" if self.done.end_reason == "lost" else "done"
        return SessionSummary(session_id=self.session_id, state=state, streams=ends, input_seq=0)

    def record_loss(self, survivors: list[str], *, is_all: bool) -> None:
        """Put on record that the program was lost with its holder.

        ``survivors`` are the processes that could not be ended; ``is_all``: no other process can be
        left. Raises OSError if START cannot be read, or the record cannot be written; in the second
        case ``done`` is set all the same.
        """
        notes = [NOTE_HOLDER_DIED, *([NOTE_NOTHING_LEFT] if is_all and not survivors else [])]
        done = InteractiveCmdDone(
            session_id=self.session_id, end_reason="lost", survivors=survivors, notes=notes
        )
        self.done = as_end(self._directory.read_start(), done)
        self._directory.write_done(self.done)

    def closing_messages(
        self, committed: Mapping[Stream, int]
    ) -> Iterator[Gap | InteractiveCmdDone]:
        """Yield the gap of each stream after its ``committed`` bytes, then the session's end."""
        if self.done is None:
            return
        for end in self.done.streams:
            tail = committed.get(end.stream, 0)
            if tail < end.next_offset:
                yield Gap(
                    session_id=self.session_id,
                    stream=end.stream,
                    from_offset=tail,
                    to_offset=end.next_offset,
                    reason="lost",
                )
        yield self.done

    def release(self) -> None:
        """Give the lock back. The directory stays for the next look."""
        os.close(self._lock)

    def remove(self) -> None:
        """Delete the directory and give the lock back: the session is forgotten."""
        self._directory.remove()
        self.release()


def remove_unless_held(directory: SessionDirectory) -> bool:
    """Remove the directory of a session whose holder did not come up in time.

    True if the directory is gone now: then no holder can come up later. False if a holder came up
    after all, or if that cannot be known.
    """
    try:
        dead = DeadHolder.claim(directory)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    if dead is None:
        return False
    dead.remove()
    return True
