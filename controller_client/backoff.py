"""How long to wait before the next connection attempt: full jitter, so that a thousand hosts do not return in one second."""

import random

from controller_client.protocol.limits import (
    RECONNECT_MAX_SECONDS,
    RECONNECT_MIN_SECONDS,
    RECONNECT_REFUSED_SECONDS,
    RECONNECT_RESET_AFTER_SECONDS,
    RECONNECT_SERVED_SECONDS,
)


class Backoff:
    """Delays in seconds, each drawn from ``[0, ceiling]``; the ceiling doubles from attempt to attempt."""

    def __init__(self, generator: random.Random | None = None) -> None:
        # Not a secret: an attacker who guesses our delay has won nothing.
        self._random = generator or random.Random()  # noqa: S311 - spreads load, guards nothing
        self._ceiling = RECONNECT_MIN_SECONDS

    def next_delay(self) -> float:
        """The wait after a failure or a lost connection."""
        delay = self._random.uniform(0.0, self._ceiling)
        self._ceiling = min(self._ceiling * 2, RECONNECT_MAX_SECONDS)
        return delay

    def refused_delay(self) -> float:
        """The wait after a refusal that time alone rarely cures; jittered by a tenth, for the same reason."""
        return RECONNECT_REFUSED_SECONDS * self._random.uniform(0.9, 1.1)

    def was_welcomed(self) -> None:
        """The server is back and serves: what it took to reach it must not keep a caller waiting when it fails once more."""
        self._ceiling = min(self._ceiling, RECONNECT_SERVED_SECONDS)

    def was_sent_away(self) -> None:
        """The server closed a connection that had served, because it is being stopped: the series begins anew."""
        self._ceiling = RECONNECT_MIN_SECONDS

    def was_connected(self, seconds: float) -> None:
        """A connection lasted this long; a stable one starts the series anew."""
        if seconds >= RECONNECT_RESET_AFTER_SECONDS:
            self._ceiling = RECONNECT_MIN_SECONDS
