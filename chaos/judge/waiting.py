"""Rules about waiting: verdicts are true by the program's own clock, and calls end in time."""

import itertools
from collections.abc import Iterator
from typing import Final

from chaos.judge.record import Call, Record, Span, Violation

# How precisely two processes of one machine read one clock, and the program writes down its wait.
_CLOCK_SECONDS: Final = 0.005


def check_verdicts(record: Record) -> Iterator[Violation]:
    """``awaiting_input`` is said only of a program that waited when it was said."""
    for call in record.calls:
        if call.outcome == "ok" and call.body.get("state") == "awaiting_input":
            why = _untrue(record, call)
            if why:
                yield Violation("waiting is true", call.session, why)


def _untrue(record: Record, call: Call) -> str:
    """Say why the verdict of a call is wrong; empty if it is right."""
    truth = record.truth(call.session)
    if not truth.waited_between(call.invoked - _CLOCK_SECONDS, call.answered + _CLOCK_SECONDS):
        return f"said at {call.answered:.3f}, and the program did not wait during the call"
    text = str(call.arguments.get("input_text", "")).rstrip("\n")
    read = truth.read_at(text) if text else None
    if read is None:
        return ""
    later = [wait.began for wait in truth.waits if wait.began >= read]
    if later and later[0] > call.answered + _CLOCK_SECONDS:
        return f"said {later[0] - call.answered:.3f} s before the program waited after {text!r}"
    return ""


def check_lengths(record: Record, beyond: float) -> Iterator[Violation]:
    """No call takes longer than its wait and ``beyond`` while no fault is near.

    The time does not count in which servers and daemon stood in line for a processor.
    """
    quiet = quiet_times(record)
    for call in record.calls:
        took = call.answered - call.invoked - call.wait
        if took <= beyond or not any(a <= call.invoked and call.answered <= b for a, b in quiet):
            continue
        stood = stood_in_line(record, call.invoked, call.answered)
        if took - stood > beyond:
            text = f"{call.tool} took {took:.1f} s beyond its wait, and no fault was near"
            text += f" (servers and daemon stood in line for a processor for {stood:.1f} s)"
            yield Violation("calls end in time", call.session, text)


def stood_in_line(record: Record, begin: float, end: float) -> float:
    """The seconds servers and daemon waited for a processor, by the samples around a time."""
    return sum(_waited(samples, begin, end) for samples in record.samples.values())


def _waited(samples: list[tuple[float, float]], begin: float, end: float) -> float:
    before = [waited for at, waited in samples if at <= begin][-1:]
    after = [waited for at, waited in samples if at >= end][:1]
    within = [waited for at, waited in samples if begin <= at <= end]
    known = [*before, *within, *after]
    # What the threads have waited is less after one of them ended.
    return sum(max(0.0, later - earlier) for earlier, later in itertools.pairwise(known))


def quiet_times(record: Record) -> list[tuple[float, float]]:
    """The times in which everything ran, and every fault before had been recovered from."""
    found, begin = [], 0.0
    for span in sorted(record.spans, key=lambda span: span.begin):
        if span.begin > begin:
            found.append((begin, span.begin))
        begin = max(begin, recovered_at(record, span) + 1.0)
    return [*found, (begin, float("inf"))]


def recovered_at(record: Record, span: Span) -> float:
    """The time when the first call that began after a fault was answered with a result."""
    over = span.over
    return min(
        (call.answered for call in record.calls if call.invoked >= over and call.outcome == "ok"),
        default=over,
    )
