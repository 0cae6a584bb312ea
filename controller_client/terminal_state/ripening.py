"""The time for which looks have met one and the same requirement."""

from typing import Final

from controller_client.terminal_state.decision import ClaimKey, Requirement
from controller_client.terminal_state.kernel.waiter import Waiter

CLOCK_SECONDS: Final = 1e-6
"""A shorter rest of a delay is a rounding error."""
WORKING_SHARE: Final = 0.1
"""A task that has used more of a processor than this works, and looks at the keyboard meanwhile."""


class Ripening:
    """The requirement that the last look met, and the time since when all looks have met it."""

    def __init__(self) -> None:
        self._key: ClaimKey | None = None
        self._since = 0.0
        self._counter = b""

    def forget(self) -> None:
        """Begin anew: something happened, or a look was void."""
        self._key = None

    def seconds_left(self, needed: Requirement | None, now: float, quiet: float) -> float:
        """Return the seconds until the requirement is met; zero if now, or if there is none.

        ``quiet`` are the seconds since the last event.
        """
        if needed is None:
            self.forget()
            return 0.0
        if self._key != needed.key:
            self._key, self._since, self._counter = needed.key, now, needed.waiter.counter
        held = quiet if needed.by_silence else min(quiet, now - self._since)
        left = needed.settle_seconds - held
        return left if needed.settle_seconds and left > CLOCK_SECONDS else 0.0

    def has_worked(self, waiter: Waiter, now: float) -> bool:
        """Return whether the waiter has used much of a processor since the first of these looks."""
        used = _processor_seconds(waiter.counter) - _processor_seconds(self._counter)
        return used > WORKING_SHARE * (now - self._since)


def _processor_seconds(counter: bytes) -> float:
    """The first number of a run counter: nanoseconds on a processor."""
    return int(counter.split()[0]) / 1e9 if counter else 0.0
