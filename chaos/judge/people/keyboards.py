"""Rules about keyboards in people's hands: who may type, who is told, and the lifetime's clock."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from chaos.judge.record import Call, Record, Violation
from chaos.judge.waiting import recovered_at
from chaos.wire import Json

# What the page does with what it hears takes a moment, and so does a command to a host.
_SLACK_SECONDS: Final = 1.0
# A lifetime's end is told after the program was ended, and looked for once a second.
_TOLD_SECONDS: Final = 12.0
# A keyboard whose page is gone goes back after a minute. The page says every 10 s that it is there.
_GONE_SECONDS: Final = 45.0

Harm = tuple[float, float]


@dataclass(frozen=True)
class Hold:
    """The time in which a page knew that it had the keyboard. ``back``: it was surely back by then.

    ``note`` is what it handed back with; None if the keyboard was lost, or never went back.
    """

    held: float
    until: float
    back: float
    note: str | None


def check_keyboards(record: Record) -> Iterator[Violation]:
    """While a person has the keyboard, callers are refused; afterwards they get the note."""
    for name in record.by_session:
        found = list(record.noted("keyboard", name))
        if not found:
            continue
        for hold in holds(record, name):
            yield from _check_refused(record, name, hold)
            yield from _check_note(record, name, hold)
        yield from _check_lost(record, name)


def holds(record: Record, name: str) -> list[Hold]:
    """Every time in which a person had the keyboard of a session, in order."""
    found: list[Hold] = []
    held = until = None
    note: str | None = None
    for event in record.noted("keyboard", name):
        at, state = _at(event), event["state"]
        if state == "held":
            held = at
        elif held is not None and state == "handing":
            until, note = at, str(event["note"])
        elif held is not None and state == "back":
            found.append(Hold(held, at if until is None else until, at, note))
            held = until = note = None
        elif held is not None and state == "lost":
            found.append(Hold(held, held, at, None))
            held = until = note = None
    return found


def _check_refused(record: Record, name: str, hold: Hold) -> Iterator[Violation]:
    for call in record.by_session[name]:
        is_within = hold.held <= call.invoked and call.answered <= hold.until
        is_input = call.tool == "send_command_input" and call.arguments.get("input_text")
        if not (is_within and is_input) or call.outcome == "unknown":
            continue
        is_told = call.code == "SESSION_TAKEN_OVER" or call.body.get("retryable")
        if not is_told:
            text = f"the caller's input was answered {call.outcome} {call.code}"
            yield Violation("one keyboard", name, text)


def _check_note(record: Record, name: str, hold: Hold) -> Iterator[Violation]:
    """The note is in an answer from the hand-back until the first that came surely after it."""
    if hold.note is None:
        return
    for call in record.by_session[name]:
        if call.tool == "send_command_input" and call.outcome == "ok":
            is_told = hold.note in str(call.body.get("hint"))
            if call.answered >= hold.until and is_told:
                return
            if call.invoked >= hold.back and call.body.get("state") != "exited":
                text = f"the first answer after it says {call.body.get('hint')!r}"
                yield Violation("the note is told", name, f"{hold.note!r}: {text}")
                return


def _check_lost(record: Record, name: str) -> Iterator[Violation]:
    """A keyboard goes back by itself only if no page was there for long."""
    broken: float | None = None
    for event in sorted([*record.noted("keyboard", name), *record.noted("page", name)], key=_at):
        if event["state"] == "broken":
            broken = _at(event)
        elif event["state"] == "lost":
            away = _at(event) - (_at(event) if broken is None else broken)
            if away < _GONE_SECONDS:
                text = f"it went back ({event['code']}), and its page was away for {away:.0f} s"
                yield Violation("keyboards stay", name, text)


def _at(event: Json) -> float:
    at = event["at"]
    assert isinstance(at, float)
    return at


def check_lifetimes(record: Record) -> Iterator[Violation]:
    """A lifetime ends a program when it is over, and it does not run while a person types."""
    harm: list[Harm] | None = None
    for name, calls in record.by_session.items():
        truth = record.truth(name)
        if not any(call.body.get("lifecycle") == "TIMED_OUT" for call in calls) or not truth.starts:
            continue
        lifetime = next((found for call in calls if (found := _lifetime(call))), None)
        if lifetime is None:
            continue
        harm = _harm(record) if harm is None else harm
        told = min(call.answered for call in calls if call.body.get("state") == "exited")
        why = _wrong_life(lifetime, truth.starts[0], told, holds(record, name), harm)
        if why:
            yield Violation("lifetimes", name, why)


def _lifetime(call: Call) -> float | None:
    found = call.arguments.get("lifetime_seconds")
    return found if isinstance(found, float) else None


def _wrong_life(
    lifetime: float, began: float, told: float, held: list[Hold], harm: list[Harm]
) -> str:
    """Say why a program lived too short or too long; empty if it did not.

    Its clock stands still while a person types. The command for that is late while a fault goes
    on, so that time counts for neither.
    """
    lived = told - began
    surely = [
        max(0.0, hold.until - hold.held - _harmed(harm, hold.held, hold.until) - _SLACK_SECONDS)
        for hold in held
    ]
    least = lifetime + sum(surely) - _SLACK_SECONDS
    most = lifetime + sum(hold.back - hold.held for hold in held) + _TOLD_SECONDS
    if lived < least:
        return f"it lived {lived:.1f} s, and {least:.1f} s were the least"
    if lived - _harmed(harm, began, told) > most:
        return f"it lived {lived:.1f} s, and {most:.1f} s were the most"
    return ""


def _harm(record: Record) -> list[Harm]:
    """The times of all faults, each until it had been recovered from."""
    spans = sorted(record.spans, key=lambda span: span.begin)
    return [(span.begin, recovered_at(record, span) + _SLACK_SECONDS) for span in spans]


def _harmed(harm: list[Harm], begin: float, end: float) -> float:
    """The seconds of a time in which some fault went on, or had not been recovered from."""
    total, at = 0.0, begin
    for first, last in harm:
        total += max(0.0, min(end, last) - max(at, first))
        at = max(at, min(end, last))
    return total
