"""Warnings about a failure that repeats: the log shall not fill with one line."""

import logging
import time
from typing import Final

_OUTAGE_SECONDS: Final = 60.0


class Outage:
    """Log a repeated failure at once, then once a minute with its count."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told_at: float | None = None
        self._untold = 0

    def report(self, text: str, *values: object) -> None:
        """Count the failure once more, and log it if the last warning is old enough."""
        now = time.monotonic()
        if self._told_at is not None and now - self._told_at < _OUTAGE_SECONDS:
            self._untold += 1
            return
        self._logger.warning(
            "%s (%d times since it was last logged)", text % values, self._untold + 1
        )
        self._told_at, self._untold = now, 0
