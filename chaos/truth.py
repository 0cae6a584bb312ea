"""The truth beside what the product says: what the programs wrote down about themselves."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Wait:
    """One look at the input: when the program began to wait, and when it had read a line."""

    began: float
    ended: float | None = None


@dataclass
class Truth:
    """The life of one program, by its own clock. ``end`` is None if it could not write its end."""

    pids: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    reads: list[tuple[float, str]] = field(default_factory=list)
    end: str | None = None
    ended: float | None = None

    def waited_between(self, begin: float, end: float) -> bool:
        """True if the program waited at some moment of this time."""
        return any(
            wait.began <= end and (wait.ended is None or wait.ended >= begin) for wait in self.waits
        )

    def read_at(self, line: str) -> float | None:
        """The time when the program had read this line; None if it never did."""
        return next((at for at, read in self.reads if read == line), None)


def truth_of(programs: Path, name: str) -> Truth:
    """Read what the program of this name wrote down; nothing if it never began."""
    found = Truth()
    path = programs / f"{name}.log"
    for line in path.read_text().splitlines() if path.exists() else []:
        kind, at, text = (*line.split(" ", 2), "")[:3]
        _take(found, kind, float(at), text)
    return found


def _take(found: Truth, kind: str, at: float, text: str) -> None:
    if kind == "start":
        found.starts.append(at)
        found.pids.append(int(text.partition(" ")[0]))
    elif kind == "wait":
        found.waits.append(Wait(at))
    elif kind == "read":
        if found.waits and found.waits[-1].ended is None:
            found.waits[-1].ended = at
        found.reads.append((at, text))
    elif kind == "end":
        found.end, found.ended = text, at
