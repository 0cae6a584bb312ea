"""The delays between the looks of a watcher."""

from typing import Final

FIRST_SECONDS: Final = 0.0003
GROWTH: Final = 1.5
WAITING_SECONDS: Final = 0.25
"""The first delay after a claim that the program waits. Output and input start the delays over."""
WAITING_GROWTH: Final = 2.0
KERNEL_IDLE_SECONDS: Final = 15.0
"""The longest delay while the kernel proves that a program waits: only a signal can end the wait.

The holder wakes that often anyway.
"""
IDLE_SECONDS: Final = 5.0
"""The longest delay while a program waits by any other evidence: its timeout may end the wait."""

# A flood is not looked at: after so many outputs in a row, output must pause for so many seconds
# before the next look.
_FLOOD: Final = ((64, 0.003), (16, 0.001), (6, 0.0003))


def longest_delay(quiet_seconds: float) -> float:
    """Return the longest delay after a silence of ``quiet_seconds``."""
    if quiet_seconds < 1.0:
        return 0.05
    return 0.1 if quiet_seconds < 10.0 else 0.25


class BackOff:
    """Delays that grow from a third of a millisecond on; output and input start them over."""

    def __init__(self) -> None:
        self._delay = FIRST_SECONDS
        self._waiting_delay = WAITING_SECONDS
        self._outputs = 0

    def on_output(self) -> None:
        """Look soon after output, unless more output keeps coming."""
        self._outputs += 1
        self._delay = FIRST_SECONDS

    def on_input(self) -> None:
        """Look soon after input: the next output is an answer and not a flood."""
        self._outputs = 0
        self._delay = FIRST_SECONDS

    def reset(self) -> None:
        """Go back to the shortest delay."""
        self._delay = FIRST_SECONDS

    def on_claim(self) -> None:
        """Note that the program was seen waiting: its next output is no flood."""
        self._outputs = 0
        self._waiting_delay = WAITING_SECONDS

    def pause_after_output(self) -> float:
        """Return the seconds that output must have paused before a look."""
        for outputs, pause_seconds in _FLOOD:
            if self._outputs >= outputs:
                return pause_seconds
        return 0.0

    def next_waiting_delay(self, *, is_proven: bool) -> float:
        """Return the seconds until a program that waits is looked at again.

        They grow with each call. ``is_proven``: the kernel alone proves that it waits.
        """
        longest = KERNEL_IDLE_SECONDS if is_proven else IDLE_SECONDS
        delay = min(self._waiting_delay, longest)
        self._waiting_delay = min(delay * WAITING_GROWTH, longest)
        return delay

    def next_delay(self, quiet_seconds: float) -> float:
        """Return the seconds until the next look; they grow with each call."""
        delay = min(self._delay, longest_delay(quiet_seconds))
        self._delay = min(self._delay * GROWTH, 1.0)
        return delay
