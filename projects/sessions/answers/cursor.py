"""The cursor of each reader of a session: the end of what "since the last read" leaves out.

The store is never consumed. A reply counts as received when its reader reads on: the next read
begins where that reply ended. A repeat of its ``request_id`` gets the same slice again, so nothing
is lost with a lost reply.
"""

from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection

from projects.accounts.authentication import Caller
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_row

# Written by hand: a reader that waits looks here at every chunk of its session.
_FIND: Final = """
SELECT stdout_from, stdout_to, stderr_from, stderr_to, request_id
FROM projects_readcursor WHERE session_id = %s AND caller = %s
"""
# One statement and not a transaction, although two reads of one caller may run at the same time.
_MOVE: Final = """
INSERT INTO projects_readcursor
    (session_id, caller, stdout_from, stdout_to, stderr_from, stderr_to, request_id)
VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (session_id, caller) DO UPDATE
SET stdout_from = excluded.stdout_from, stdout_to = excluded.stdout_to,
    stderr_from = excluded.stderr_from, stderr_to = excluded.stderr_to,
    request_id = excluded.request_id
WHERE projects_readcursor.stdout_to = %s AND projects_readcursor.stderr_to = %s
"""


class CursorPosition(NamedTuple):
    """The slice of each stream that the last reply carried, and that reply's ``request_id``."""

    stdout_from: int = 0
    stdout_to: int = 0
    stderr_from: int = 0
    stderr_to: int = 0
    request_id: UUID | None = None

    def is_repeated_by(self, request_id: UUID | None) -> bool:
        """True if the call with this ``request_id`` is the one that was answered last."""
        return request_id is not None and request_id == self.request_id


def reader_of(caller: Caller | None) -> str:
    """The reader that a caller is. Two tokens of one name are two readers."""
    if caller is None:
        return "system"
    return caller.label if caller.token_id is None else str(caller.token_id)


def position_of(session_id: UUID, reader: str) -> CursorPosition:
    """The position of the reader; the beginning if it never read."""
    position = fetch_row(CursorPosition, _FIND, [as_parameter(session_id), reader])
    return position or CursorPosition()


def move(session_id: UUID, reader: str, known: CursorPosition, position: CursorPosition) -> bool:
    """Move the cursor to what a reply carries.

    Returns False, and moves nothing, if the cursor is no longer at ``known``: then another read
    came first.
    """
    request_id = None if position.request_id is None else as_parameter(position.request_id)
    moved = [*position[:-1], request_id]
    with connection.cursor() as cursor:
        parameters = [as_parameter(session_id), reader, *moved, known.stdout_to, known.stderr_to]
        cursor.execute(_MOVE, parameters)
        return bool(cursor.rowcount == 1)
