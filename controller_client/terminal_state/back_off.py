"""When to look again."""

from typing import Final

FIRST_SECONDS: Final = 0.0003
GROWTH: Final = 1.5
WAITING_SECONDS: Final = 0.25
"""From the moment a program was seen waiting to the next look: what matters next comes with output or input, and starts over."""
IDLE_SECONDS: Final = 1.0
"""To this the time between such looks grows: only a signal or a timeout of its own can end the wait."""

# After so many looks that new output made void, wait so long after the next output: a flood is not looked at.
_FLOOD: Final = ((64, 0.003), (16, 0.001), (6, 0.0003))


def longest_delay(quiet_seconds: float) -> float:
    """The cap of the back-off, after a silence."""
    if quiet_seconds < 1.0:
        return 0.05
    return 0.1 if quiet_seconds < 10.0 else 0.25


class BackOff:
    """Delays that grow from a third of a millisecond on; each output or input starts them over."""

    def __init__(self) -> None:
        self._delay = FIRST_SECONDS
        self._waiting_delay = WAITING_SECONDS
        self._outputs = 0

    def on_output(self) -> None:
        """Output came: look soon, unless it keeps coming."""
        self._outputs += 1
        self._delay = FIRST_SECONDS

    def on_input(self) -> None:
        """Something was typed: what comes next is an answer, not a flood."""
        self._outputs = 0
        self._delay = FIRST_SECONDS

    def reset(self) -> None:
        """Back to the quick end."""
        self._delay = FIRST_SECONDS

    def on_claim(self) -> None:
        """The program was seen waiting: what it prints next is no flood."""
        self._outputs = 0
        self._waiting_delay = WAITING_SECONDS

    def pause_after_output(self) -> float:
        """How long output must have paused before a look pays."""
        for outputs, pause_seconds in _FLOOD:
            if self._outputs >= outputs:
                return pause_seconds
        return 0.0

    def next_delay(self, quiet_seconds: float, *, is_waiting: bool) -> float:
        """Delay until the next look, growing with each call."""
        if is_waiting:
            delay, self._waiting_delay = self._waiting_delay, min(self._waiting_delay * GROWTH, IDLE_SECONDS)
            return delay
        delay = min(self._delay, longest_delay(quiet_seconds))
        self._delay = min(self._delay * GROWTH, 1.0)
        return delay
