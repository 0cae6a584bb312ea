"""What a session printed since this caller last looked, as a digest. Whoever looked is remembered by a cursor that no other read moves."""

from uuid import UUID

from projects import output_log, read_cursor
from projects.authentication import Caller
from projects.command_snapshot import command_snapshot
from projects.database import at_length
from projects.digest import Digest, Digester
from projects.read_cursor import CursorPosition

MAX_BYTES = 1024 * 1024
"""The newest that is looked at; what is older counts as skipped."""


async def session_digest(project_id: UUID, session_id: UUID, *, caller: Caller | None = None, since: int | None = None) -> Digest:
    """Standard output from ``since`` on; None: from where the caller's last look of this kind ended, which this one moves on.

    Raises SessionNotFound.
    """
    return await at_length(_digest, project_id, session_id, f"look:{read_cursor.reader_of(caller)}"[:128], since)


def _digest(project_id: UUID, session_id: UUID, reader: str, since: int | None) -> Digest:
    end = command_snapshot(project_id, session_id).stdout_next_offset
    cursor = read_cursor.position_of(session_id, reader)
    start = min(end, cursor.stdout_to if since is None else since)
    digester = Digester(start)
    if end - start > MAX_BYTES:
        digester.skip(end - start - MAX_BYTES)
        first = end - MAX_BYTES
    else:
        first = start
    for piece in output_log.pieces(session_id, "stdout", first, end):
        if isinstance(piece, bytes):
            digester.feed(piece)
        else:
            digester.skip(piece.to_offset - piece.from_offset)
    if since is None and end > start:
        # Fails if another look of this caller came first; that one has moved it.
        read_cursor.move(session_id, reader, cursor, CursorPosition(stdout_from=start, stdout_to=end))
    return digester.digest()
