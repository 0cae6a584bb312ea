"""How far a caller has read a session "since the last read". The store itself is never consumed.

A reply is taken as received when its caller reads on: the next read begins where it ended. A repeat of its ``request_id`` gets the same
slice again, so a reply that was lost loses nothing.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db import connection

from projects.authentication import Caller
from projects.dispatch import as_parameter

# Written out: a reader that waits looks here at every chunk of its session.
_FIND: Final = """
SELECT stdout_from, stdout_to, stderr_from, stderr_to, request_id FROM projects_readcursor WHERE session_id = %s AND caller = %s
"""
# One statement, so that no transaction is needed for it: two reads of one caller may be under way.
_MOVE: Final = """
INSERT INTO projects_readcursor (session_id, caller, stdout_from, stdout_to, stderr_from, stderr_to, request_id)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (session_id, caller) DO UPDATE SET stdout_from = excluded.stdout_from, stdout_to = excluded.stdout_to,
    stderr_from = excluded.stderr_from, stderr_to = excluded.stderr_to, request_id = excluded.request_id
WHERE projects_readcursor.stdout_to = %s AND projects_readcursor.stderr_to = %s
"""


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
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [as_parameter(session_id), reader])
        row = cursor.fetchone()
    if row is None:
        return CursorPosition()
    stdout_from, stdout_to, stderr_from, stderr_to, request_id = row
    return CursorPosition(stdout_from, stdout_to, stderr_from, stderr_to, None if request_id is None else UUID(str(request_id)))


def move(session_id: UUID, reader: str, known: CursorPosition, position: CursorPosition) -> bool:
    """Notes what a reply carries. False, and nothing noted, if the reader does not stand at ``known`` any more: another read came first."""
    request_id = None if position.request_id is None else as_parameter(position.request_id)
    slices = (position.stdout_from, position.stdout_to, position.stderr_from, position.stderr_to)
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, [as_parameter(session_id), reader, *slices, request_id, known.stdout_to, known.stderr_to])
        return bool(cursor.rowcount == 1)
