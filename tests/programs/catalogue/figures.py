"""The figures of a run of the catalogue: how often the watcher was right, class by class."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import pytest

from tests.support.hosts.truth import Judgement

_FAULTS = ("early", "missed", "wrong kind", "wrong text", "wrong end")


@dataclass
class Figures:
    """The judgements of every program, by its class."""

    by_class: dict[str, list[tuple[str, list[Judgement]]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add(self, kind: str, program: str, judgements: list[Judgement]) -> None:
        """Take the judgements of all steps of a program."""
        self.by_class[kind].append((program, judgements))

    def table(self) -> str:
        """Return the rows of all classes, their sum, and a line for each fault."""
        head = ("class", "programs", "verdicts", "right", *_FAULTS, "early by evidence")
        rows = [self._row(kind, programs) for kind, programs in sorted(self.by_class.items())]
        everything = [program for programs in self.by_class.values() for program in programs]
        rows.append(self._row("all", everything))
        lines = [" | ".join(map(str, row)) for row in (head, *rows)]
        return "\n".join((*lines, *self._faults()))

    @staticmethod
    def _row(kind: str, programs: list[tuple[str, list[Judgement]]]) -> tuple[object, ...]:
        verdicts = [judgement for _, judgements in programs for judgement in judgements]
        count = Counter(judgement.fault for judgement in verdicts)
        early = Counter(str(each.evidence) for each in verdicts if each.fault == "early")
        return (
            kind,
            len(programs),
            len(verdicts),
            count[""],
            *(count[fault] for fault in _FAULTS),
            " ".join(f"{evidence}:{number}" for evidence, number in sorted(early.items())) or "-",
        )

    def _faults(self) -> list[str]:
        return [
            f"{kind} | {program} | step {number} | {judgement.fault} | {judgement.said}"
            for kind, programs in sorted(self.by_class.items())
            for program, judgements in programs
            for number, judgement in enumerate(judgements, 1)
            if judgement.fault
        ]


FIGURES = pytest.StashKey[Figures]()
