"""Digests of the output that a session printed since a caller's last digest.

Whoever looked is remembered by a cursor that no other read moves.
"""

from uuid import UUID

from projects.accounts.authentication import Caller
from projects.output import log as output_log
from projects.output.digest import Digest, Digester
from projects.secrets.masks import secret_mask
from projects.sessions.answers import cursor as read_cursor
from projects.sessions.answers.cursor import CursorPosition
from projects.sessions.snapshot import session_snapshot
from projects.storage.access import at_length

MAX_BYTES = 1024 * 1024
"""The newest that is looked at; what is older counts as skipped."""


async def session_digest(
    project_id: UUID,
    session_id: UUID,
    *,
    caller: Caller | None = None,
    since: int | None = None,
    request_id: UUID | None = None,
) -> Digest:
    """A digest of standard output from ``since`` on.

    ``since`` None: from where the caller's last digest ended; this digest then moves that place on.

    A repeat with the ``request_id`` of the last look is about the same output again. Raises
    SessionNotFound.
    """
    return await at_length(
        _digest,
        project_id,
        session_id,
        f"look:{read_cursor.reader_of(caller)}"[:128],
        since,
        request_id,
    )


def _digest(
    project_id: UUID, session_id: UUID, reader: str, since: int | None, request_id: UUID | None
) -> Digest:
    end = session_snapshot(project_id, session_id).stdout_next_offset
    cursor = read_cursor.position_of(session_id, reader)
    is_repeat = since is None and cursor.is_repeated_by(request_id)
    if is_repeat:
        start, end = cursor.stdout_from, cursor.stdout_to
    else:
        start = min(end, cursor.stdout_to if since is None else since)
    digester = Digester(start, secret_mask(session_id))
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
    if since is None and not is_repeat and (end > start or request_id is not None):
        # Fails if another look of this caller came first; that one has moved it.
        read_cursor.move(
            session_id,
            reader,
            cursor,
            CursorPosition(stdout_from=start, stdout_to=end, request_id=request_id),
        )
    return digester.digest()
