"""Rules about output: every byte once, or in a gap that says why."""

from collections.abc import Iterator, Sequence
from typing import Final

from chaos.judge.record import Call, Record, Violation
from chaos.wire import Json

_LOST: Final = "bytes are lost: lost"
_TURNS: Final = {"start_interactive_command", "send_command_input"}
# Reasons that a gap may have, and the faults that make it true.
_CAUSES: Final = {
    "ring_overflow": {
        "daemon_",
        "database_",
        "everything_",
        "link_",
        "postgresql_",
        "server_",
        "sqlite_",
    },
    "restored": {"restore"},
}


def check_stored(record: Record) -> Iterator[Violation]:
    """The stored stream is what the program printed, apart from declared gaps."""
    for note in record.notes["stored"]:
        name, stream = str(note["session"]), str(note["stream"])
        written = _bytes(record, name, stream)
        stored = (record.stored / f"{name}.{stream}").read_bytes()
        gaps = _gaps(note)
        yield from _check_reasons(record, name, gaps)
        yield from _compare(record, name, stream, written, _placed(stored, gaps))


def _bytes(record: Record, name: str, stream: str) -> bytes:
    path = record.programs / f"{name}.{stream}"
    return path.read_bytes() if path.exists() else b""


def _gaps(note: Json) -> list[tuple[int, int, str]]:
    gaps = note["gaps"]
    assert isinstance(gaps, list)
    return [(gap["from_offset"], gap["to_offset"], gap["reason"]) for gap in gaps]


def _placed(stored: bytes, gaps: list[tuple[int, int, str]]) -> list[tuple[int, bytes]]:
    """The stored pieces, each with its offset in the stream."""
    pieces, offset, taken = [], 0, 0
    for begin, end, _reason in gaps:
        pieces.append((offset, stored[taken : taken + begin - offset]))
        taken, offset = taken + begin - offset, end
    return [*pieces, (offset, stored[taken:])]


def _compare(
    record: Record, name: str, stream: str, written: bytes, pieces: list[tuple[int, bytes]]
) -> Iterator[Violation]:
    is_cut_off = record.is_cut_off(name)
    end = pieces[-1][0] + len(pieces[-1][1])
    if not is_cut_off and end != len(written):
        text = f"{stream}: the program printed {len(written)} bytes, and the stream has {end}"
        yield Violation("every byte once", name, text)
        return
    for offset, data in pieces:
        # A program that was ended from outside may not have read what the terminal echoed.
        same = _same(data, written[offset : offset + len(data)])
        is_echo = is_cut_off and offset + same == len(written)
        if same < len(data) and not is_echo:
            text = f"{stream} differs from what the program printed at byte {offset + same}"
            yield Violation("every byte once", name, text)
            return


def _same(left: Sequence[object], right: Sequence[object]) -> int:
    """Count what is equal from the beginning on."""
    if left == right:
        return len(left)
    pairs = zip(left, right, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))


def _check_reasons(
    record: Record, name: str, gaps: list[tuple[int, int, str]]
) -> Iterator[Violation]:
    done = {span.kind for span in record.spans}
    for begin, end, reason in gaps:
        if reason == "lost":
            is_true = name in record.victims
        else:
            causes = _CAUSES.get(reason, set())
            is_true = any(kind.startswith(cause) for kind in done for cause in causes)
        if not is_true:
            text = f"[{begin}, {end}) is gone as {reason!r}, and nothing of the kind happened"
            yield Violation("gaps say why", name, text)


def check_shown(record: Record) -> Iterator[Violation]:
    """Each turn shows the output from where the one before it ended: nothing is skipped."""
    for name, calls in record.by_session.items():
        shown: int | None = None
        for call in calls:
            if call.tool in _TURNS and call.outcome == "ok":
                begin, end = _offset(call, "offset"), _offset(call, "next_offset")
                if shown is not None and begin > shown:
                    text = f"{call.tool} shows {begin} on, and only {shown} bytes were shown before"
                    yield Violation("nothing is skipped", name, text)
                shown = max(end, shown or 0)


def _offset(call: Call, key: str) -> int:
    value = call.body[key]
    assert isinstance(value, int)
    return value


def check_read(record: Record) -> Iterator[Violation]:
    """All reads of a background session or a job together are what its program printed."""
    for note in record.notes["read"]:
        name = str(note["session"])
        if note["lost"] or record.is_cut_off(name):
            continue
        for stream in ("out", "err"):
            written = _bytes(record, name, stream).decode(errors="replace")
            if not is_whole(str(note[stream]), written, record.rewinds(name)):
                text = f"{stream}: read {len(str(note[stream]))} of {len(written)} characters"
                yield Violation("reads are whole", name, text)


def is_whole(read: Sequence[object], written: Sequence[object], rewinds: int) -> bool:
    """True if everything was read once, or from an earlier place on again after a restore.

    Of more than one restore nobody says where reading went on: that is not judged.
    """
    if not rewinds:
        return read == written
    if rewinds > 1:
        return True
    begin = _same(read, written)
    end = _same(read[::-1], written[::-1])
    return len(read) >= len(written) and begin + end >= len(read)


def check_one_shots(record: Record) -> Iterator[Violation]:
    """The answer of a one-shot is what its program printed, and how it ended.

    What a killed holder had not sent yet is gone, and the answer says so.
    """
    for call in record.calls:
        if call.tool != "execute_command" or call.body.get("end_reason") != "exited":
            continue
        said = (call.body["stdout"], call.body["stderr"], f"code {call.body['return_code']}")
        streams = (_bytes(record, call.session, stream).decode() for stream in ("out", "err"))
        true = (*streams, str(record.truth(call.session).end))
        is_told = _LOST in f"{said[0]}{said[1]}" and call.body["truncated"]
        if is_told and call.session in record.victims and said[2] == true[2]:
            continue
        if said != true:
            yield Violation("one-shots are whole", call.session, f"{said} and not {true}"[:600])
