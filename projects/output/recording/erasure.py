"""Takes parts of a recording away for good: output, and what else holds text that was printed.

Runs inside the transaction of the action that is audited. A gap says that something was here.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from uuid import UUID

from django.db.models import Max, Min, Q

from controller_client.protocol.messages import Stream
from projects.models import Approval, CommandSession, OutputChunk, OutputGap, SessionEvent
from projects.output.recording import rows, screens
from projects.output.recording.timeline import STREAMS, RecordingClock, clock_of

MAX_BYTES: Final = 8 * 1024 * 1024
MAX_CHUNKS: Final = 5000
"""So much is taken away in one transaction: others wait for it."""
REASON: Final = "blacked_out"
CHUNK_SECONDS: Final = 0.1
"""A piece of output holds what was written so long after its first byte."""
_PROMPT_BYTES: Final = 4096
"""A prompt may repeat what was printed so far before it."""


class Range(NamedTuple):
    """Bytes ``[start, end)`` of a stream, which are so many ``pieces`` as they are stored."""

    start: int
    end: int
    pieces: int

    @property
    def size(self) -> int:
        """The number of bytes from the first to the last."""
        return self.end - self.start


def ranges_between(
    session: CommandSession, from_seconds: float, to_seconds: float
) -> dict[Stream, Range]:
    """Return what was printed between two moments of the replay, in whole pieces."""
    clock = clock_of(session.pk)
    found = {
        stream: _range(session, stream, clock, from_seconds - CHUNK_SECONDS, to_seconds)
        for stream in STREAMS
    }
    return {stream: each for stream, each in found.items() if each.pieces}


def _range(
    session: CommandSession, stream: Stream, clock: RecordingClock, since: float, until: float
) -> Range:
    inside = [
        (chunk.offset, chunk.end)
        for chunk in rows.chunks(session.pk, stream, with_data=False)
        if since <= clock.of(chunk) <= until
    ]
    return Range(inside[0][0], inside[-1][1], len(inside)) if inside else Range(0, 0, 0)


def black_out(session_id: UUID, ranges: Mapping[Stream, Range]) -> None:
    """Take ranges away: their bytes, the screens that may show them, and the prompts in them."""
    firsts = _locked_firsts(session_id)
    for stream, (start, end, _) in ranges.items():
        OutputChunk.objects.filter(
            session_id=session_id, stream=stream, offset__gte=start, offset__lt=end
        ).delete()
        # What retention took meanwhile is in a gap already, and no two gaps overlap.
        _mark_gone(session_id, stream, max(start, firsts[stream]), end)
        screens.forget_from(session_id, stream, start)
        if stream == "stdout":
            _forget_prompts(session_id, start, end + _PROMPT_BYTES)


def _locked_firsts(session_id: UUID) -> dict[Stream, int]:
    """Return where what is left of each stream begins, until the transaction ends."""
    row = CommandSession.objects.select_for_update(no_key=True).get(id=session_id)
    return {"stdout": row.stdout_first_offset, "stderr": row.stderr_first_offset}


def _mark_gone(session_id: UUID, stream: Stream, start: int, end: int) -> None:
    """Make one gap of the range and of those that it touches."""
    if start >= end:
        return
    inside = OutputGap.objects.filter(
        session_id=session_id, stream=stream, from_offset__lte=end, to_offset__gte=start
    ).filter(Q(reason=REASON) | Q(from_offset__gte=start, to_offset__lte=end))
    around = inside.aggregate(first=Min("from_offset"), last=Max("to_offset"))
    inside.delete()
    OutputGap.objects.create(
        session_id=session_id,
        stream=stream,
        from_offset=min(start, start if around["first"] is None else around["first"]),
        to_offset=max(end, around["last"] or 0),
        reason=REASON,
    )


def forget_text(session_id: UUID) -> None:
    """Take away what holds text of the whole recording beside its output."""
    for stream in STREAMS:
        screens.forget_from(session_id, stream, -1)
    _forget_prompts(session_id, -1, None)


def _forget_prompts(session_id: UUID, after: int, upto: int | None) -> None:
    """Blank the prompts that were seen behind ``after``, as far as ``upto``."""
    prompts = SessionEvent.objects.filter(
        session_id=session_id, kind="prompt", offset__gt=after
    ).only("detail")
    newest = CommandSession.objects.filter(id=session_id, terminal_offset__gt=after)
    if upto is not None:
        prompts, newest = prompts.filter(offset__lte=upto), newest.filter(terminal_offset__lte=upto)
    told = [event for event in prompts if event.detail.get("prompt")]
    for event in told:
        event.detail["prompt"] = ""
    SessionEvent.objects.bulk_update(told, ["detail"], batch_size=500)
    newest.update(terminal_prompt="")
    # They do not say where in the output their prompt stood.
    Approval.objects.filter(session_id=session_id).update(prompt="")
