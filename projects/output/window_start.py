"""Finds the place where text may begin in a window that starts anywhere in a stream.

Text begins behind the character or the escape sequence in which the window starts.

Runs in a database thread.
"""

from typing import Final
from uuid import UUID

from controller_client.protocol.messages import Stream
from controller_client.protocol.terminal_text.view import (
    MAX_SEQUENCE_CHARS,
    SEQUENCE_STARTS,
    complete_length,
    sequence_rest,
)
from projects.output import log as output_log
from projects.output.characters import length_of_rest

LOOK_BACK_BYTES: Final = MAX_SEQUENCE_CHARS
"""A sequence that began longer ago than this was never meant as one."""
TURN_LOOK_BACK_BYTES: Final = 256
"""For a turn: it begins where the one before it ended, in an unfinished sequence at worst."""
_NEAR_BYTES: Final = 1024


def rest_before_text(
    session_id: UUID,
    stream: Stream,
    start: int,
    data: bytes,
    look_back_bytes: int = LOOK_BACK_BYTES,
) -> int:
    """The number of bytes of ``data`` that end a character or an escape sequence begun before it.

    ``data`` begins at ``start``.
    """
    if not start or not data:
        return 0
    before = bytes_before(session_id, stream, start, min(look_back_bytes, _NEAR_BYTES))
    # No sequence goes on behind the end of a line, so what is further back does not matter.
    if look_back_bytes > _NEAR_BYTES and b"\n" not in before:
        before = bytes_before(session_id, stream, start, look_back_bytes)
    return rest_of(before, data)


def rest_of(before: bytes, data: bytes) -> int:
    """The same, given what is known of the bytes before; empty: nothing."""
    if not before:
        return length_of_rest(None, data)
    begun = before[complete_length(before) :]
    return (
        sequence_rest(begun, data)
        if (begun + data[:1]).startswith(SEQUENCE_STARTS)
        else length_of_rest(before, data)
    )


def bytes_before(session_id: UUID, stream: Stream, start: int, size: int) -> bytes:
    """Up to ``size`` bytes that end at ``start`` without a gap; empty if what was there is gone."""
    held = b""
    for piece in output_log.pieces(session_id, stream, max(0, start - size), start):
        held = held + piece if isinstance(piece, bytes) else b""
    return held
