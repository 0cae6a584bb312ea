"""Rules about what a run costs: nothing grows, and no process ends of a shortage of another.

A process is warm 30 s after it was first seen. The load of a run is warm after two minutes: by
then all kinds of calls were made several times. What a process had in use in the first third of
the rest of the run is compared with the last third, both while warm. The median counts, so that no
single conversation does. The daemon's four threads for logs come and go together, so the median of
threads would tell how often they are there: of threads the level counts that nine tenths of the
samples do not pass. A shorter run is not judged.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chaos.judge.record import Record, Violation

_WARM_PROCESS_SECONDS: Final = 30.0
_WARM_LOAD_SECONDS: Final = 120.0
_LEAST_SECONDS: Final = 300.0
_FEWEST_SAMPLES: Final = 15
_MOST_GROWTH: Final = 1.10
_ENDING_SHORTAGES: Final = frozenset({"server_memory", "server_processes"})
# The watchdog of a server waits for a minute, and counts the time of a process that runs.
_LATE_END_SECONDS: Final = 90.0
# Counts are small numbers that differ with what is under way at the moment.
_SPARE: Final = {"bytes": 0, "descriptors": 4, "threads": 3}
# Beside the output of programs, a call leaves rows, their indexes and its row of the audit log.
_MOST_BYTES_A_CALL: Final = 12 * 1024
_EMPTY_DATABASE_BYTES: Final = 40 * 1024 * 1024


@dataclass(frozen=True)
class Level:
    """The use that a process made of something, early and late in a run."""

    process: str
    what: str
    early: float
    late: float

    @property
    def is_flat(self) -> bool:
        """True if it has grown by no more than a tenth."""
        return self.late <= self.early * _MOST_GROWTH + _SPARE[self.what]


def check_resources(record: Record) -> Iterator[Violation]:
    """Nothing that a process has in use grows, nor the database beyond what was put into it."""
    if record.restores:
        # Sessions whose callers lost them are ended after the load. Until then they add up.
        return
    for level in levels(record):
        if not level.is_flat:
            text = f"{level.what}: {level.early:.0f} early, and {level.late:.0f} late in the run"
            yield Violation("nothing grows", level.process, text)
    begin, end = _span(record)
    cost = bytes_a_call(record)
    if end - begin >= _LEAST_SECONDS and cost is not None and cost > _MOST_BYTES_A_CALL:
        yield Violation("nothing grows", "", f"the database: {cost:.0f} bytes a call beside output")


def check_exits(record: Record) -> Iterator[Violation]:
    """A server ends by itself only of a lack of memory or threads, a little after it at most."""
    short = [span for span in record.spans if span.kind in _ENDING_SHORTAGES]
    for note in record.notes["exited"]:
        at = number(note["at"])
        if not any(span.begin <= at <= span.over + _LATE_END_SECONDS for span in short):
            yield Violation("servers go on", str(note["process"]), f"ended with {note['code']}")


def levels(record: Record) -> list[Level]:
    """The levels of memory, descriptors and threads of each process; none of a short run."""
    samples = _warm(record)
    begin, end = _span(record)
    found: list[Level] = []
    if end - begin < _LEAST_SECONDS:
        return found
    for process, values in sorted(samples.items()):
        third = (end - begin) / 3
        early = [each for at, each in values if at <= begin + third]
        late = [each for at, each in values if at >= end - third]
        if min(len(early), len(late)) < _FEWEST_SAMPLES:
            continue
        found += [Level(process, what, _level(early, what), _level(late, what)) for what in _SPARE]
    return found


def _span(record: Record) -> tuple[float, float]:
    """The time from when the load was warm until its end."""
    times = [number(note["at"]) for note in record.notes["sample"]]
    over = [number(note["at"]) for note in record.notes["over"]]
    return min(times, default=0.0) + _WARM_LOAD_SECONDS, max(over or times, default=0.0)


def _warm(record: Record) -> dict[str, list[tuple[float, dict[str, object]]]]:
    """The samples of warm processes, by the name of the process."""
    first: dict[object, float] = {}
    found: dict[str, list[tuple[float, dict[str, object]]]] = defaultdict(list)
    begin, end = _span(record)
    for note in record.notes["sample"]:
        at = number(note["at"])
        age = at - first.setdefault((note.get("process"), note.get("pid")), at)
        if age >= _WARM_PROCESS_SECONDS and begin <= at <= end and note.get("bytes"):
            found[str(note["process"])].append((at, note))
    return found


def _level(samples: list[dict[str, object]], what: str) -> float:
    values = [number(sample.get(what, 0)) for sample in samples]
    if what == "threads":
        return statistics.quantiles(values, n=10)[-1]
    return statistics.median(values)


def bytes_a_call(record: Record) -> float | None:
    """The bytes a call adds to the database beside output of programs; None if nobody looked."""
    sizes = [number(note["bytes"]) for note in record.notes["database"]]
    if not sizes or not record.calls:
        return None
    output = sum(path.stat().st_size for path in record.programs.glob("*.[oe][ur][tr]"))
    return max(0.0, sizes[-1] - _EMPTY_DATABASE_BYTES - output) / len(record.calls)


def number(value: object) -> float:
    """A number of the history."""
    assert isinstance(value, int | float)
    return float(value)
