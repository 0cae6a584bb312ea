"""Tables about a run: calls, faults, stalls, and the times until things worked again."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from chaos.judge.record import Call, Record, Span, Violation
from chaos.judge.resources import bytes_a_call, levels, number
from chaos.judge.waiting import recovered_at
from chaos.plot import picture

_AFTER_SECONDS: Final = 20.0
_PAGE: Final = Path(__file__).resolve().parents[1] / "docs/reliability.md"
_PICTURES: Final = _PAGE.parent / "pictures"
_BEGIN: Final = "<!-- figures: python -m chaos report -->\n"
_END: Final = "<!-- end of figures -->"


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


def longest_stall(record: Record, span: Span) -> float:
    """The longest time without a result, from a fault's begin until some time after its end."""
    begin, end = span.begin, span.over + _AFTER_SECONDS
    times = [begin, *(at for at in record.successes() if begin <= at <= end)]
    return max((b - a for a, b in itertools.pairwise(times)), default=0.0)


def recoveries(record: Record, spans: Sequence[Span] | None = None) -> list[float]:
    """The seconds from the end of each fault, or of these, to a result of a call begun after it.

    Faults during which or before whose recovery another fault went on are left out: what was
    waited for then was the end of that other fault.
    """
    chosen = record.spans if spans is None else spans
    times = [(span, recovered_at(record, span)) for span in chosen]
    return [at - span.over for span, at in times if _is_alone(record, span, span.over, at)]


def _is_alone(record: Record, span: Span, begin: float, end: float) -> bool:
    """True if no other fault went on at any moment of this time."""
    others = (other for other in record.spans if other is not span)
    return not any(other.begin <= end and other.over >= begin for other in others)


def undisturbed_starts(record: Record) -> list[float]:
    """The seconds from the start of a server or daemon that a fault ended until it was ready.

    Left out are starts that were made slow, and starts while another fault went on.
    """
    return [
        took
        for span in record.spans
        if span.kind.startswith(("server_", "daemon_"))
        and not span.kind.endswith("_slow_start")
        and _is_alone(record, span, span.end, span.over)
        for took in span.starts
    ]


def turns(record: Record) -> int:
    """The lines that were typed on a terminal and acknowledged, each counted once."""
    return len(
        {
            (call.session, call.request_id)
            for call in record.calls
            if call.outcome == "ok" and call.arguments.get("input_text")
        }
    )


def untouched_stalls(record: Record) -> list[float]:
    """The seconds of calls beyond their wait while a fault touched the holder of another session.

    Calls near any other fault are left out: all other faults touch every session.
    """
    around = {span.number: (span.begin, recovered_at(record, span) + 1.0) for span in record.spans}
    found: list[float] = []
    for span in (span for span in record.spans if span.touched):
        others = [times for number, times in around.items() if number != span.number]
        found += [
            max(0.0, call.answered - call.invoked - call.wait)
            for call in record.calls
            if call.session_id not in span.touched
            and _overlaps(call, (span.begin, span.over))
            and not any(_overlaps(call, times) for times in others)
        ]
    return found


def _overlaps(call: Call, times: tuple[float, float]) -> bool:
    return call.invoked <= times[1] and call.answered >= times[0]


def faults_by_kind(record: Record) -> dict[str, list[Span]]:
    """The faults that were done, by kind."""
    found: dict[str, list[Span]] = defaultdict(list)
    for span in record.spans:
        found[span.kind].append(span)
    return dict(sorted(found.items()))


def fault_rows(record: Record) -> list[str]:
    """One row for each kind of fault: how many, the longest stall, the longest recovery."""
    rows = ["| Fault | Count | Longest stall s | Longest until the next success s |"]
    rows.append("|---|---|---|---|")
    for kind, spans in faults_by_kind(record).items():
        stall = max(longest_stall(record, span) for span in spans)
        backs = recoveries(record, spans)
        back = f"{max(backs):.1f}" if backs else "not seen alone"
        rows.append(f"| {kind} | {len(spans)} | {stall:.1f} | {back} |")
    return rows


def totals(record: Record) -> dict[str, str]:
    """The figures of a run, by what they count."""
    outcomes = Counter(call.outcome for call in record.calls)
    backs, starts = recoveries(record), undisturbed_starts(record)
    return {
        "calls": f"{len(record.calls)}: "
        + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())),
        "conversations": str(len(record.by_session)),
        "turns": str(turns(record)),
        "faults": str(len(record.spans)),
        f"until the next success, of {len(backs)} faults after which no other went on": _spread(
            backs
        ),
        f"start to ready, of {len(starts)} without another fault": _spread(starts),
        "calls beyond their wait while another session's holder fails": _spread(
            untouched_stalls(record)
        ),
        **_costs(record),
    }


def _costs(record: Record) -> dict[str, str]:
    """The memory and descriptors of a run, early and late, and the size of its database."""
    units = {"bytes": ("memory", 1 << 20, " MiB"), "descriptors": ("descriptors", 1, "")}
    units["threads"] = ("threads", 1, "")
    found = {}
    for level in levels(record):
        name, unit, spelled = units[level.what]
        told = f"{level.early / unit:.0f}{spelled}, {level.late / unit:.0f}{spelled}"
        found[f"{name} of {level.process}, early and late"] = told
    sizes = [number(note["bytes"]) for note in record.notes["database"]]
    cost = bytes_a_call(record)
    if cost is not None:
        size = f"{sizes[-1] / (1 << 20):.0f} MiB"
        found["database at the end"] = f"{size}; {cost / 1024:.1f} KiB a call beside output"
    return found


def _spread(values: Sequence[float]) -> str:
    half, most = percentile(values, 0.5), percentile(values, 0.95)
    return f"p50 {half:.1f} s, p95 {most:.1f} s, most {max(values, default=0.0):.1f} s"


def summary(record: Record) -> str:
    """The figures and the table of a run, as text."""
    figures = [f"{what}: {told}" for what, told in totals(record).items()]
    return "\n".join([*figures, *fault_rows(record)])


def write_page(runs: Sequence[tuple[Record, Sequence[Violation]]]) -> None:
    """Put the figures and tables of these runs into the page about reliability."""
    before, _, rest = _PAGE.read_text().partition(_BEGIN)
    _old, _, after = rest.partition(_END)
    tables = "\n".join(_section(place, *run) for place, run in enumerate(runs, 1))
    _PAGE.write_text(f"{before}{_BEGIN}\n{tables}\n{_END}{after}")


def violations_by_rule(found: Sequence[Violation]) -> str:
    """Count the violations of each rule; ``none`` if no rule was broken."""
    rules = Counter(violation.rule for violation in found)
    return ", ".join(f"{count} {rule}" for rule, count in sorted(rules.items())) or "none"


def _section(place: int, record: Record, found: Sequence[Violation]) -> str:
    figures = [f"| {what} | {told} |" for what, told in totals(record).items()]
    figures.append(f"| violations | {violations_by_rule(found)} |")
    rows = ["| Of the run | |", "|---|---|", *figures, "", *fault_rows(record)]
    if record.notes["sample"]:
        name = f"reliability-run-{place}.svg"
        (_PICTURES / name).write_text(picture(record))
        rows += ["", f"![What run {place} had in use over its time](pictures/{name})"]
    return "\n".join([f"### Run {place}: {record.storage}", "", *rows, ""])
