"""How far a caller has read a session "since the last read". The store itself is never consumed.

A reply is taken as received when its caller reads on: the next read begins where it ended. A repeat of its ``request_id`` gets the same
slice again, so a reply that was lost loses nothing.
"""

from dataclasses import dataclass
from uuid import UUID

from projects.authentication import Caller
from projects.models import ReadCursor

_COLUMNS = ("stdout_from", "stdout_to", "stderr_from", "stderr_to", "request_id")


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """The slice of each stream that the last reply carried, and that reply's ``request_id``."""

    stdout_from: int = 0
    stdout_to: int = 0
    stderr_from: int = 0
    stderr_to: int = 0
    request_id: UUID | None = None

    def is_repeated_by(self, request_id: UUID | None) -> bool:
        """A call with this ``request_id`` is the one that was answered last."""
        return request_id is not None and request_id == self.request_id


def reader_of(caller: Caller | None) -> str:
    """Whose cursor it is: two tokens of one name are two readers."""
    if caller is None:
        return "system"
    return caller.label if caller.token_id is None else str(caller.token_id)


def position_of(session_id: UUID, reader: str) -> CursorPosition:
    """Where the reader stands; at the beginning, if it never read."""
    row = ReadCursor.objects.filter(session_id=session_id, caller=reader).values_list(*_COLUMNS).first()
    return CursorPosition(*row) if row is not None else CursorPosition()


def locked_position_of(session_id: UUID, reader: str) -> CursorPosition:
    """The same, and no other read of this reader moves it until the transaction ends."""
    ReadCursor.objects.bulk_create([ReadCursor(session_id=session_id, caller=reader)], ignore_conflicts=True)
    row = ReadCursor.objects.select_for_update(no_key=True).values_list(*_COLUMNS).get(session_id=session_id, caller=reader)
    return CursorPosition(*row)


def move(session_id: UUID, reader: str, position: CursorPosition) -> None:
    """Notes what a reply carries; inside the transaction that locked the cursor."""
    columns = {name: getattr(position, name) for name in _COLUMNS}
    ReadCursor.objects.filter(session_id=session_id, caller=reader).update(**columns)
