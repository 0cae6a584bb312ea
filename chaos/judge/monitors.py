"""Rules about monitors: every line of a log once and in order."""

from collections.abc import Iterator

from chaos.judge.output import is_whole
from chaos.judge.record import Record, Violation
from chaos.program import line_of
from chaos.wire import Json


def check_monitors(record: Record) -> Iterator[Violation]:
    """A followed log is its lines, each once, in order and whole."""
    for note in record.notes["followed"]:
        name = str(note["session"])
        why = _wrong(note, name, record.rewinds(name))
        if why:
            yield Violation("logs are whole", name, why)


def _wrong(note: Json, name: str, rewinds: int) -> str:
    """The first thing that is wrong with what was read of a log; empty if nothing is."""
    pieces, written = note["pieces"], note["written"]
    assert isinstance(pieces, list)
    assert isinstance(written, int)
    if any(gap for gap, _content in pieces):
        return f"a gap was declared: {[gap for gap, _content in pieces if gap]}"
    lines = "".join(content for _gap, content in pieces).splitlines()
    wanted = [line_of(name, number) for number in range(written)]
    if is_whole(lines, wanted, rewinds):
        return ""
    for number, line in enumerate(lines):
        if line != line_of(name, number):
            return f"line {number} is {line!r}"
    return f"{len(lines)} of {written} lines were read"
