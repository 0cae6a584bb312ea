"""Rules about pages that watch: every byte that the store has, each once, and nothing else."""

from collections.abc import Iterator
from typing import Final

from chaos.judge.record import Record, Violation
from chaos.wire import Json

MOST_LAG_BYTES: Final = 768 * 1024
"""A page that is further behind may skip to the newest screen."""


def check_shown(record: Record) -> Iterator[Violation]:
    """A page is shown each byte of a session once, in order, as it is stored, to the end."""
    stored = {
        str(note["session"]): note for note in record.notes["stored"] if note["stream"] == "out"
    }
    for note in record.notes["shown"]:
        name = str(note["session"])
        why = _wrong(record, note, stored[name]) if name in stored else ""
        if why:
            yield Violation("pages show every byte", name, f"{note['who']}: {why}")
    for note in record.notes["shut_out"]:
        text = f"{note['who']} was turned away: {note['code']}, {note['text']}"
        yield Violation("pages are let in", str(note["session"]), text)


def _wrong(record: Record, note: Json, stored: Json) -> str:
    """The first thing that is wrong with what a page was shown; empty if nothing is."""
    shown, total = (record.stored / str(note["file"])).read_bytes(), note["total"]
    pages, gaps, events = (
        _pages(record, str(note["session"]), stored),
        stored["gaps"],
        note["events"],
    )
    assert isinstance(total, int)
    assert isinstance(gaps, list)
    assert isinstance(events, list)
    at: int | None = None
    taken = 0
    for kind, offset, more in ([*event, None][:3] for event in events):
        if kind == "open":
            at = offset if at is None else at
            continue
        if kind == "begin":
            why = _wrong_begin(at, offset, more, total)
        else:
            why = "" if offset == at else f"{kind} at {offset}, and {at} was the next byte"
        if not why and kind == "output":
            data, taken = shown[taken : taken + more], taken + more
            is_same = data == pages[offset : offset + more]
            why = "" if is_same else f"the bytes from {offset} on are not those that are stored"
            at = offset + more
        elif not why and kind == "gap":
            is_known = any(g["from_offset"] <= offset and more <= g["to_offset"] for g in gaps)
            why = "" if is_known else f"a gap [{offset}, {more}) that the store does not have"
            at = more
        elif kind == "begin":
            at = offset
        if why:
            return why
    return "" if at == total else f"shown up to {at} of {total}"


def _wrong_begin(at: int | None, offset: int, skipped: int, total: int) -> str:
    """Say why a page must not begin anew here; empty if it may."""
    if at is None or at == offset:
        return ""
    if offset < at:
        return f"it begins again at {offset}, and {at} was the next byte"
    if total - at <= MOST_LAG_BYTES:
        return f"it begins anew at {offset}, and was only at {at} of {total}"
    return "" if skipped == offset - at else f"{offset - at} bytes are skipped, and {skipped} told"


def _pages(record: Record, name: str, stored: Json) -> bytes:
    """The stored stream, with zeroes in its gaps, so that offsets are places in it."""
    data, gaps = (record.stored / f"{name}.out").read_bytes(), stored["gaps"]
    assert isinstance(gaps, list)
    whole = bytearray()
    taken = 0
    for gap in gaps:
        size = gap["from_offset"] - len(whole)
        whole += data[taken : taken + size]
        taken += size
        whole += bytes(gap["to_offset"] - gap["from_offset"])
    return bytes(whole + data[taken:])
