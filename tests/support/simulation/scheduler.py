"""Virtual time: the seed alone decides the order of events."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from random import Random


class Scheduler:
    """Runs actions in the order of their due times."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._tie = count()

    def at(self, when: float, action: Callable[[], None]) -> None:
        heappush(self._due, (when, next(self._tie), action))

    def soon(self, longest_seconds: float, action: Callable[[], None]) -> None:
        """Run ``action`` after a random time of up to ``longest_seconds``."""
        self.at(self.now + self.random.random() * longest_seconds, action)

    def run_next(self) -> bool:
        """Run one action; False when nothing is left to happen."""
        if not self._due:
            return False
        self.now, _, action = heappop(self._due)
        action()
        return True
