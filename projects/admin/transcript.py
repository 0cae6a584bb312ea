"""Transcripts for people: the newest part as text on the session's page, and all as a download."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from django.http import StreamingHttpResponse

from controller_client.protocol.messages import Stream
from projects.admin.parts.display import visible
from projects.audit.log import audit
from projects.models import CommandSession
from projects.output.log import GapRange, pieces
from projects.output.text_view import TextView
from projects.secrets.masks import secret_mask
from projects.storage.access import at_length

SHOWN_BYTES = 256 * 1024


@dataclass(frozen=True)
class Part:
    """One stream on the page: the text of the bytes ``[offset, next_offset)``, and its gaps."""

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
    """All stored bytes as an attachment that no browser interprets.

    A gap is one line in brackets.
    """
    _record(session, viewed_by, "transcript.download")
    response = StreamingHttpResponse(_raw(session), content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="session-{session.pk}.log"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _ends(session: CommandSession) -> list[tuple[Stream, int]]:
    return [("stdout", session.stdout_next_offset), ("stderr", session.stderr_next_offset)]


def _part(session: CommandSession, stream: Stream, end: int) -> Part:
    start = max(0, end - SHOWN_BYTES)
    mask = secret_mask(session.pk)
    text, gaps, view = "", [], TextView()
    for piece in pieces(session.pk, stream, start, end):
        if isinstance(piece, GapRange):
            gaps.append(_described(piece))
            view.feed(b"", final=True)
            text += f"{view.text}\n[{_described(piece)}]\n"
            view = TextView()
        else:
            # One view for all pieces: a program may draw a secret across the end of a piece.
            view.feed(piece)
    view.feed(b"", final=True)
    return Part(
        stream, start, end, visible(mask.masked(text + view.text), keep="\n\t"), tuple(gaps)
    )


async def _raw(session: CommandSession) -> AsyncIterator[bytes]:
    for stream, end in _ends(session):
        stored = pieces(session.pk, stream, 0, end)
        while (piece := await at_length(next, stored, None)) is not None:
            yield piece if isinstance(piece, bytes) else f"\n[{_described(piece)}]\n".encode()


def _described(gap: GapRange) -> str:
    return f"bytes {gap.from_offset} to {gap.to_offset} are gone: {gap.reason}"


def _record(session: CommandSession, actor: str, action: str) -> None:
    audit(actor, action, (session.project_id, session.controller_id, session.pk))
