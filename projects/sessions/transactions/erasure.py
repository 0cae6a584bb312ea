"""Deletes what an ended session printed: all of it, or what was printed between two moments."""

from collections.abc import Callable, Mapping
from uuid import UUID

from controller_client.protocol.messages import Stream
from projects.audit.log import audit
from projects.errors.calls import InvalidArgument
from projects.errors.sessions import SessionActive, SessionNotFound
from projects.models import CommandSession
from projects.output import log as output_log
from projects.output.recording import erasure
from projects.output.recording.erasure import Range
from projects.output.recording.timeline import beginning_of
from projects.sessions.selectors import ACTIVE
from projects.storage import clock
from projects.storage.access import at_length, in_database
from projects.storage.shared import one_transaction


async def output_clear(project_id: UUID, session_id: UUID, *, actor: str) -> None:
    """Delete the output of a session that is over. Raises SessionNotFound or SessionActive."""
    await in_database(_begin_to_clear, project_id, session_id, actor)
    while await in_database(output_clear_some, session_id):
        pass


def _begin_to_clear(project_id: UUID, session_id: UUID, actor: str) -> None:
    with one_transaction():
        session = _ended(project_id, session_id)
        if session.cleared_at is None:
            erasure.forget_text(session_id)
            audit(actor, "session.clear", (project_id, session.controller_id, session_id), {})


def output_clear_some(session_id: UUID, at_end: Callable[[], None] = lambda: None) -> bool:
    """Delete a batch of an ended session's output; False if that was the last.

    Marked after its last batch, with what ``at_end`` writes: what a server left that died before is
    deleted when somebody, or the sweeper, does it again.
    """
    if output_log.clear(session_id):
        return True
    with one_transaction():
        rows = CommandSession.objects.filter(id=session_id, cleared_at__isnull=True)
        if rows.update(cleared_at=clock.now()):
            # Screens may have been made of what was left meanwhile.
            erasure.forget_text(session_id)
            at_end()
    return False


async def output_black_out(
    project_id: UUID,
    session_id: UUID,
    *,
    from_seconds: float,
    to_seconds: float,
    actor: str,
    began_at: str | None = None,
) -> int:
    """Delete what was printed between two moments, in seconds since the recording began.

    ``began_at`` is its beginning as a person was shown it; None: as it is now. Returns the number
    of bytes. Raises SessionNotFound, SessionActive, or InvalidArgument if nothing was printed then,
    too much to delete at once, or the recording begins at another moment than was shown.
    """
    about = (project_id, session_id)
    ranges = await at_length(_ranges, *about, from_seconds, to_seconds, began_at)
    detail = {"from_seconds": from_seconds, "to_seconds": to_seconds}
    await in_database(_black_out, *about, ranges, actor, detail)
    return sum(found.size for found in ranges.values())


def _ranges(
    project_id: UUID,
    session_id: UUID,
    from_seconds: float,
    to_seconds: float,
    began_at: str | None,
) -> dict[Stream, Range]:
    """Raises SessionNotFound, SessionActive or InvalidArgument."""
    session = _ended(project_id, session_id)
    # Without its first piece a recording may begin later, and its seconds count from there.
    if began_at is not None and began_at != beginning_of(session_id):
        raise InvalidArgument(["from, to: the recording begins later now; look at it again"])
    ranges = erasure.ranges_between(session, from_seconds, to_seconds)
    if not ranges:
        raise InvalidArgument(["from, to: nothing was printed between them"])
    if (
        sum(found.pieces for found in ranges.values()) > erasure.MAX_CHUNKS
        or sum(found.size for found in ranges.values()) > erasure.MAX_BYTES
    ):
        raise InvalidArgument(
            ["from, to: too much was printed between them"],
            "Black out shorter parts, or delete the whole recording.",
        )
    return ranges


def _black_out(
    project_id: UUID,
    session_id: UUID,
    ranges: Mapping[Stream, Range],
    actor: str,
    moments: Mapping[str, float],
) -> None:
    detail: dict[str, object] = dict(moments)
    for stream, found in ranges.items():
        detail[stream] = [found.start, found.end]
    with one_transaction():
        session = _ended(project_id, session_id)
        erasure.black_out(session_id, ranges)
        audit(actor, "session.black_out", (project_id, session.controller_id, session_id), detail)


def _ended(project_id: UUID, session_id: UUID) -> CommandSession:
    """Return the session. Raises SessionNotFound or SessionActive."""
    session = CommandSession.objects.filter(project_id=project_id, id=session_id).first()
    if session is None:
        raise SessionNotFound(session_id)
    if session.state in ACTIVE:
        raise SessionActive(session_id)
    return session
