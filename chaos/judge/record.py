"""The record of a run, read back: its calls, its faults, and what the programs wrote down."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from chaos.history import events
from chaos.truth import Truth, truth_of
from chaos.wire import Json

_RESTORE: Final = "restore"
NOT_FOUND: Final = frozenset({"MONITOR_NOT_FOUND", "NOT_FOUND", "SESSION_NOT_FOUND"})
"""Refusals that say that the server does not know what the call is about."""

NEVER_STARTED: Final = frozenset({"EXPIRED", "START_FAILED"})
"""Ends that say that no program was started, and that a repeat of the start tries again."""


@dataclass(frozen=True)
class Violation:
    """Something that was promised and did not hold. ``rule`` names the promise."""

    rule: str
    session: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.session}: {self.text}"


@dataclass(frozen=True)
class Call:
    """One call of the history: invoked, and answered, refused or unknown."""

    session: str
    tool: str
    arguments: Json
    wait: float
    invoked: float
    answered: float
    outcome: str
    body: Json

    @property
    def code(self) -> str:
        """The code of a refusal; empty for everything else."""
        return str(self.body.get("code", "")) if self.outcome == "refused" else ""

    @property
    def request_id(self) -> str:
        """The id that the caller chose for its action."""
        found = self.arguments.get("request_id") or self.arguments.get("requestId")
        return str(found or "")

    @property
    def session_id(self) -> str:
        """The id of the session that the call is about, or that it started."""
        names = ("session_id", "sessionId", "token")
        for source in (self.arguments, self.body):
            found = next((source[name] for name in names if name in source), None)
            if found is not None:
                return str(found)
        return ""


@dataclass
class Span:
    """One fault: when it began and ended, and when each process that it ended was ready again."""

    number: int
    kind: str
    begin: float
    end: float = 0.0
    ready: list[float] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    victims: list[str] = field(default_factory=list)
    """The ids of sessions whose holder was killed."""
    touched: list[str] = field(default_factory=list)
    """The ids of the only sessions that a fault of a holder touches."""

    @property
    def over(self) -> float:
        """The time when nothing of the fault was left: its end, or the last process ready again."""
        return max([self.end, *self.ready])


@dataclass
class Record:
    """Everything that a run left, by conversation."""

    calls: list[Call] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    notes: dict[str, list[Json]] = field(default_factory=lambda: defaultdict(list))
    truths: dict[str, Truth] = field(default_factory=dict)
    storage: str = "sqlite"
    programs: Path = Path()
    stored: Path = Path()

    @cached_property
    def by_session(self) -> dict[str, list[Call]]:
        """The calls of each conversation, in order."""
        found: dict[str, list[Call]] = defaultdict(list)
        for call in self.calls:
            found[call.session].append(call)
        return found

    @cached_property
    def victims(self) -> set[str]:
        """The conversations whose holder was killed."""
        killed = {session for span in self.spans for session in span.victims}
        return {call.session for call in self.calls if call.session_id in killed}

    @cached_property
    def samples(self) -> dict[int, list[tuple[float, float]]]:
        """The seconds each process had waited for a processor, each with its time, by pid."""
        found: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for note in self.notes["sample"]:
            waited = _number(note.get("waited", 0.0))
            found[int(_number(note["pid"]))].append((_number(note["at"]), waited))
        return found

    def truth(self, name: str) -> Truth:
        """The truth that the program of a conversation wrote down."""
        if name not in self.truths:
            self.truths[name] = truth_of(self.programs, name)
        return self.truths[name]

    def is_cut_off(self, name: str) -> bool:
        """True if a program was ended from outside, or its holder died under it.

        A program whose holder died may still see its input closed, and write down an end. What
        came after a backup of a program that was over at the restore is with nobody.
        """
        truth = self.truth(name)
        return truth.end is None or name in self.victims or self.is_end_forgotten(name)

    @cached_property
    def restores(self) -> list[Span]:
        """The restores, each from the begin of its backup until its server was confirmed."""
        return [span for span in self.spans if span.kind == _RESTORE]

    @cached_property
    def forgotten(self) -> set[str]:
        """The conversations whose start a restored database may not know."""
        return {
            name
            for name, calls in self.by_session.items()
            for call in calls
            for span in self.restores
            if call.tool == calls[0].tool and call.invoked <= span.over
            if call.answered >= span.begin
        }

    def is_end_forgotten(self, name: str) -> bool:
        """True if a restored database may not know that a program had ended, nor its host."""
        ended = self.truth(name).ended or self._asked_to_end(name)
        told = max((_number(note["at"]) for note in self.noted("told_end", name)), default=None)
        return ended is not None and any(
            ended <= span.over and (told is None or told >= span.begin) for span in self.restores
        )

    def _asked_to_end(self, name: str) -> float | None:
        calls = self.by_session[name]
        asked = (
            each for each in calls if each.tool == "stop_command" or "terminate" in each.arguments
        )
        return next((call.invoked for call in asked), None)

    def rewinds(self, name: str) -> int:
        """Count the restores that may have put back how far a conversation had read."""
        calls = self.by_session[name]
        return sum(
            calls[0].invoked <= span.over and calls[-1].answered >= span.begin
            for span in self.restores
        )

    def noted(self, kind: str, session: str) -> Iterator[Json]:
        """The events of a kind that are about a conversation."""
        return (note for note in self.notes[kind] if note.get("session") == session)

    def successes(self) -> list[float]:
        """The times at which calls were answered with a result, in order."""
        return sorted(call.answered for call in self.calls if call.outcome == "ok")


def actions(calls: Iterable[Call]) -> list[list[Call]]:
    """The calls of a conversation by ``request_id``, in order: each action with its repeats."""
    found: dict[str, list[Call]] = {}
    for call in calls:
        found.setdefault(call.request_id or f"{call.invoked}", []).append(call)
    return list(found.values())


def record_of(directory: Path) -> Record:
    """Read what a run left in its directory."""
    record = Record(programs=directory / "programs", stored=directory / "stored")
    spans: dict[int, Span] = {}
    for event in events(directory):
        kind = str(event["kind"])
        if kind == "call":
            record.calls.append(_call(event))
        elif kind == "fault":
            _take_fault(spans, event)
        elif kind == "run":
            record.storage = f"{event['storage']}, seed {event['seed']}, {event['seconds']} s"
        else:
            record.notes[kind].append(event)
    record.spans = list(spans.values())
    return record


def _call(event: Json) -> Call:
    arguments, body = event["arguments"], event["body"]
    assert isinstance(arguments, dict)
    assert isinstance(body, dict)
    return Call(
        str(event["session"]),
        str(event["tool"]),
        arguments,
        _number(event["wait"]),
        _number(event["invoked"]),
        _number(event["at"]),
        str(event["outcome"]),
        body,
    )


def _take_fault(spans: dict[int, Span], event: Json) -> None:
    number, at = int(_number(event["number"])), _number(event["at"])
    if event["state"] == "begin":
        victims, touched = _ids(event, "victims"), _ids(event, "touched")
        # A fault of two parts, such as a change of version and back, is one fault.
        span = spans.setdefault(number, Span(number, str(event["fault"]), at, at))
        span.victims += victims
        span.touched += [*victims, *touched]
    elif event["state"] == "end":
        spans[number].end = at
    else:
        spans[number].ready.append(at)
        spans[number].starts.append(_number(event["seconds"]))


def _ids(event: Json, key: str) -> list[str]:
    found = event.get(key, [])
    assert isinstance(found, list)
    return [str(each) for each in found]


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
