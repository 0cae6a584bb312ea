"""The order in which the streams of one session produced their bytes, as runs of one stream."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from controller_client.protocol.messages import Stream

# Two pipes that are written in turns, byte by byte, would need a run for each byte. Above this
# number of runs the order between the streams gets coarser. The order of each stream stays exact.
_MAX_RUNS: Final = 4096
_STREAMS: Final = 2


@dataclass(slots=True)
class Run:
    """The bytes of ``stream`` from the end of its previous run up to ``end``."""

    stream: Stream
    end: int


class ProductionOrder:
    """A queue of runs, in the order of production, whose length is bounded."""

    def __init__(self, max_runs: int = _MAX_RUNS) -> None:
        self._max_runs = max_runs
        self._runs: deque[Run] = deque()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def first(self) -> Run | None:
        """The oldest run, None if there is none."""
        return self._runs[0] if self._runs else None

    def add(self, stream: Stream, end: int) -> None:
        """Record that ``stream`` now reaches to ``end``."""
        run = self._extendable(stream)
        if run is None:
            self._runs.append(Run(stream, end))
        else:
            run.end = end

    def pop_first(self) -> Run:
        """Remove and return the oldest run."""
        return self._runs.popleft()

    def pop_last(self) -> Run:
        """Remove and return the newest run."""
        return self._runs.pop()

    def drop_before(self, floors: Mapping[Stream, int]) -> None:
        """Forget the oldest runs that lie wholly below their stream's floor."""
        while self._runs and self._runs[0].end <= floors[self._runs[0].stream]:
            self._runs.popleft()

    def prepend(self, earlier: "ProductionOrder") -> None:
        """Put all runs of ``earlier`` in front, emptying it."""
        while earlier:
            self._runs.appendleft(earlier.pop_last())

    def _extendable(self, stream: Stream) -> Run | None:
        depth = 1 if len(self._runs) < self._max_runs else _STREAMS
        newest = [self._runs[-n] for n in range(1, min(depth, len(self._runs)) + 1)]
        return next((run for run in newest if run.stream == stream), None)
