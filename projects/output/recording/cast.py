"""A recording as asciicast v3: one line of JSON for the header, and one for each moment.

The text of all ``o`` lines is the stored output as UTF-8. Bytes that are no UTF-8 are replacement
characters. Gaps, prompts, inputs, take-overs and approvals are markers.
"""

import codecs
import json
import re
import signal
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import accumulate
from typing import Any, Final

from controller_client.protocol.messages import Stream
from projects.models import CommandSession, SessionEvent
from projects.output.recording.labels import label_of
from projects.output.recording.timeline import (
    Happened,
    Lost,
    Moment,
    Output,
    RecordingClock,
    clock_of,
    moments,
)
from projects.secrets.masks import MASK, SecretMask, secret_mask

Line = tuple[float, str, str]
"""A line of a cast: seconds since the beginning, the code, and its text."""
_HELD_CHARS: Final = 64 * 1024
# What a screen shows nothing of: sequences that move the cursor or colour, and characters that do.
# A line editor writes a blank and a carriage return where it folds its line.
_UNSEEN: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
    r"| \r(?!\n)|[\0-\x08\n-\x1f\x7f]"
)
_Span = tuple[int, int, str]
"""Where text is hidden, and what is shown in its place."""


def cast(session: CommandSession, upto_event: int | None = None) -> Iterator[str]:
    """Yield the lines of the cast of ``session``, as far as its row reaches.

    ``upto_event`` is the last event that is told; None: every event.
    """
    clock = clock_of(session.pk)
    yield _json(_header(session, clock))
    mask = secret_mask(session.pk)
    lines = masked(_lines(moments(session, clock, upto_event=upto_event), mask), mask)
    before = 0
    for time, code, text in lines:
        # Rounded sums do not drift, rounded differences do.
        now = round(time * 1000)
        yield _json([(now - before) / 1000, code, text])
        before = now


def _header(session: CommandSession, clock: RecordingClock) -> dict[str, object]:
    rows, cols = first_size(session)
    began_at: datetime = clock.began_at or session.created_at
    return {
        "version": 3,
        "term": {"cols": cols, "rows": rows},
        "timestamp": int(began_at.timestamp()),
        "command": session.command,
        "tags": ["holdline", "host times" if clock.is_host_time else "server times"],
    }


def first_size(session: CommandSession) -> tuple[int, int]:
    """Return the rows and columns of the terminal before the first time that it was resized."""
    resizes = SessionEvent.objects.filter(session_id=session.pk, kind="resize").order_by("seq")
    detail = resizes.values_list("detail", flat=True).first() or {}
    rows, cols = detail.get("from_rows"), detail.get("from_cols")
    return (rows or session.rows, cols or session.cols)


def _lines(found: Iterable[Moment], mask: SecretMask) -> Iterator[Line]:
    decoders: dict[Stream, codecs.IncrementalDecoder] = {}
    new_decoder = codecs.getincrementaldecoder("utf-8")
    time = 0.0
    for moment in found:
        time = moment.time
        if isinstance(moment, Output):
            decoder = decoders.setdefault(moment.stream, new_decoder("replace"))
            if text := decoder.decode(moment.data):
                yield time, "o", text
        elif isinstance(moment, Lost):
            if (broken := decoders.pop(moment.stream, None)) is not None:
                yield from _rest({moment.stream: broken}, time)
            yield time, "m", f"gap: {moment.size} bytes are gone ({moment.reason})"
        else:
            if moment.event.kind == "end":
                yield from _rest(decoders, time)
                decoders.clear()
            yield from _event_lines(moment, mask)
    yield from _rest(decoders, time)


def _rest(decoders: dict[Stream, codecs.IncrementalDecoder], time: float) -> Iterator[Line]:
    """Yield what is left of characters that never became whole."""
    for decoder in decoders.values():
        if rest := decoder.decode(b"", True):
            yield time, "o", rest


def _event_lines(moment: Happened, mask: SecretMask) -> Iterator[Line]:
    event = moment.event
    if event.kind == "resize":
        yield moment.time, "r", f"{event.detail.get('cols')}x{event.detail.get('rows')}"
    elif event.kind == "end":
        if (status := _exit_status(event.detail)) is not None:
            yield moment.time, "x", str(status)
    elif event.kind != "gap" and (label := label_of(event)) is not None:
        yield moment.time, "m", mask.masked(label)


def _exit_status(detail: dict[str, Any]) -> int | None:
    """Return the exit code, or for a signal what a shell makes of it."""
    if detail.get("exit_code") is not None:
        return int(detail["exit_code"])
    number = getattr(signal, str(detail.get("signal") or ""), None)
    return 128 + int(number) if isinstance(number, signal.Signals) else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


# ---- secrets -------------------------------------------------------------------------------------


def masked(lines: Iterable[Line], mask: SecretMask) -> Iterator[Line]:
    """Yield the lines without secrets, also without those that two or more lines hold together."""
    if mask.found is None:
        yield from lines
        return
    longest = len(mask.found.pattern)
    held: list[Line] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line[2]) if line[1] == "o" else 0
        if size >= longest + _HELD_CHARS:
            done, held = _split(_without_secrets(held, mask), longest)
            yield from done
            size = sum(len(text) for _, code, text in held if code == "o")
    yield from _without_secrets(held, mask)


def _without_secrets(lines: list[Line], mask: SecretMask) -> list[Line]:
    spans = _spans("".join(text for _, code, text in lines if code == "o"), mask)
    if not spans:
        return lines
    result: list[Line] = []
    position = 0
    for time, code, text in lines:
        if code == "o":
            if shown := _cut(text, position, spans):
                result.append((time, code, shown))
            position += len(text)
        else:
            result.append((time, code, text))
    return result


def _spans(whole: str, mask: SecretMask) -> list[_Span]:
    """Return where secrets lie, whole or with folds, colours and movements between their letters.

    What lies between the letters stays, so the rest of the screen is drawn where it was.
    """
    if mask.found is None:
        return []
    runs = list(_runs(whole))
    sizes = [last - first for first, last in runs]
    places = list(accumulate(sizes, initial=0))
    printed = "".join(whole[first:last] for first, last in runs)
    found = set[_Span]()
    for match in mask.found.finditer(whole):
        pieces = [(match.start() + first, match.start() + last) for first, last in _runs(match[0])]
        found |= set(_shown_at_the_first(pieces))
    for match in mask.found.finditer(printed) if len(runs) > 1 else ():
        begin, end = match.span()
        at = range(bisect_right(places, begin) - 1, bisect_left(places, end))
        pieces = [
            (runs[n][0] + max(begin - places[n], 0), runs[n][0] + min(end - places[n], sizes[n]))
            for n in at
        ]
        found |= set(_shown_at_the_first(pieces))
    return sorted(found)


def _shown_at_the_first(pieces: list[tuple[int, int]]) -> Iterator[_Span]:
    for number, (first, last) in enumerate(pieces):
        yield first, last, "" if number else MASK


def _runs(whole: str) -> Iterator[tuple[int, int]]:
    """Yield where text lies that a screen shows."""
    first = 0
    for unseen in _UNSEEN.finditer(whole):
        if unseen.start() > first:
            yield first, unseen.start()
        first = unseen.end()
    if first < len(whole):
        yield first, len(whole)


def _cut(text: str, start: int, spans: list[_Span]) -> str:
    """Return ``text``, which begins at ``start``, with the mask where a span begins in it."""
    end, parts, position = start + len(text), [], start
    for first, last, shown in spans:
        if last <= position or first >= end:
            continue
        parts.append(text[position - start : max(first, position) - start])
        if first >= start:
            parts.append(shown)
        position = min(last, end)
    return "".join([*parts, text[position - start :]])


def _split(lines: list[Line], kept_chars: int) -> tuple[list[Line], list[Line]]:
    """Split off the last lines, which have ``kept_chars`` or more: a secret may begin in them."""
    kept, index = 0, len(lines)
    while index and kept < kept_chars:
        index -= 1
        kept += len(lines[index][2]) if lines[index][1] == "o" else 0
    return lines[:index], lines[index:]
