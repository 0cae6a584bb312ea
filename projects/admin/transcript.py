"""What a session's terminal showed, for people: the newest part as text on its page, all of it as a download."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from django.http import StreamingHttpResponse

from controller_client.protocol.messages import Stream
from projects.admin.display import visible
from projects.audit_log import audit
from projects.database import at_length
from projects.models import CommandSession
from projects.output_log import GapRange, pieces
from projects.text_view import text_of

SHOWN_BYTES = 256 * 1024


@dataclass(frozen=True)
class Part:
    """One stream as the page shows it: the text of bytes ``[offset, next_offset)``, and what is missing there."""

    stream: str
    offset: int
    next_offset: int
    text: str
    gaps: tuple[str, ...]


def newest(session: CommandSession, *, viewed_by: str) -> list[Part]:
    """The newest SHOWN_BYTES of each stream that has any."""
    _record(session, viewed_by, "transcript.view")
    return [_part(session, stream, end) for stream, end in _ends(session) if end]


def download(session: CommandSession, *, viewed_by: str) -> StreamingHttpResponse:
    """Raw bytes as an attachment that no browser interprets; a gap is one line in brackets."""
    _record(session, viewed_by, "transcript.download")
    response = StreamingHttpResponse(_raw(session), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="session-{session.pk}.log"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _ends(session: CommandSession) -> list[tuple[Stream, int]]:
    return [("stdout", session.stdout_next_offset), ("stderr", session.stderr_next_offset)]


def _part(session: CommandSession, stream: Stream, end: int) -> Part:
    start = max(0, end - SHOWN_BYTES)
    text, gaps = [], []
    for piece in pieces(session.pk, stream, start, end):
        if isinstance(piece, GapRange):
            gaps.append(_described(piece))
            text.append(f"\n[{_described(piece)}]\n")
        else:
            text.append(visible(text_of(piece), keep="\n\t"))
    return Part(stream, start, end, "".join(text), tuple(gaps))


async def _raw(session: CommandSession) -> AsyncIterator[bytes]:
    for stream, end in _ends(session):
        stored = pieces(session.pk, stream, 0, end)
        while (piece := await at_length(next, stored, None)) is not None:
            yield piece if isinstance(piece, bytes) else f"\n[{_described(piece)}]\n".encode()


def _described(gap: GapRange) -> str:
    return f"bytes {gap.from_offset} to {gap.to_offset} are gone: {gap.reason}"


def _record(session: CommandSession, actor: str, action: str) -> None:
    audit(actor, action, (session.project_id, session.controller_id, session.pk))
