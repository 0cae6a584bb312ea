"""The delay before the next connection attempt: a growing ceiling with full jitter.

The jitter keeps a thousand hosts from returning in the same second. The ceiling doubles up to
``RECONNECT_SOON_SECONDS``. From there it grows by a twenty-fifth of the outage: people wait for the
host of a server that was away for half a minute, and a server that is away for an hour is asked
seldom.
"""

import random

from controller_client.protocol.limits import (
    RECONNECT_DOUBTED_SECONDS,
    RECONNECT_GROWTH,
    RECONNECT_MAX_SECONDS,
    RECONNECT_MIN_SECONDS,
    RECONNECT_REFUSED_SECONDS,
    RECONNECT_RESET_AFTER_SECONDS,
    RECONNECT_SOON_SECONDS,
)


class Backoff:
    """Delays in seconds, drawn from ``[0, ceiling]``; each attempt raises the ceiling."""

    def __init__(self, generator: random.Random | None = None) -> None:
        self._random = generator or random.SystemRandom()
        self._ceiling = RECONNECT_MIN_SECONDS
        self._is_refused = False

    def next_delay(self) -> float:
        """Return the delay after a failure or a lost connection."""
        delay = self._random.uniform(0.0, self._ceiling)
        soon = min(self._ceiling * 2, RECONNECT_SOON_SECONDS)
        self._ceiling = min(max(soon, self._ceiling * RECONNECT_GROWTH), RECONNECT_MAX_SECONDS)
        return delay

    def refused_delay(self) -> float:
        """Return the jittered delay after a refusal that time alone rarely cures.

        It is long only once the refusal was repeated: a proxy, or a server in trouble, may give the
        first one by mistake.
        """
        seconds = RECONNECT_REFUSED_SECONDS if self._is_refused else RECONNECT_DOUBTED_SECONDS
        self._is_refused = True
        return seconds * self._random.uniform(0.9, 1.1)

    def was_welcomed(self) -> None:
        """Lower the ceiling, because the server works again.

        After an outage that took many attempts, the next failure must not cost a long delay.
        """
        self._ceiling = min(self._ceiling, RECONNECT_SOON_SECONDS)
        self._is_refused = False

    def was_sent_away(self) -> None:
        """Start the series again, because a server that is being stopped closed the connection."""
        self._ceiling = RECONNECT_MIN_SECONDS

    def was_connected(self, seconds: float) -> None:
        """Start the series again if the connection was stable: it lasted ``seconds``."""
        if seconds >= RECONNECT_RESET_AFTER_SECONDS:
            self._ceiling = RECONNECT_MIN_SECONDS
