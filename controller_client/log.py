"""The daemon's log: one JSON object per line on stderr.

A line is ASCII only, so nothing that a program or a server names can forge a line. Payload is never
given to a logger. A credential that slips into a text anyway is blanked here.
"""

import json
import logging
import re
import sys
import time

LEVELS = ("debug", "info", "warning", "error")
MAX_TEXT_CHARS = 2000
OUTAGE_SECONDS = 60.0
_CREDENTIAL = re.compile(r"\b(ctl|hl)_([A-Za-z0-9]+)_[A-Za-z0-9_-]+")


class Outage:
    """Log a repeated failure at once, then once in OUTAGE_SECONDS with its count."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._told_at: float | None = None
        self._untold = 0

    def report(self, text: str, *values: object) -> None:
        """Count the failure once more, and log it if the last warning is old enough."""
        now = time.monotonic()
        if self._told_at is not None and now - self._told_at < OUTAGE_SECONDS:
            self._untold += 1
            return
        self._logger.warning(
            "%s (%d times since it was last logged)", text % values, self._untold + 1
        )
        self._told_at, self._untold = now, 0


def redact(text: str) -> str:
    """Return ``text`` with the secret part of every credential blanked."""
    return _CREDENTIAL.sub(r"\1_\2_***", text)


class LineFormatter(logging.Formatter):
    """Formats a record as one line of JSON, with its traceback inside it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of ``record``, without a newline."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage())[:MAX_TEXT_CHARS],
        }
        if record.exc_info:
            line["exception"] = redact(self.formatException(record.exc_info))[-MAX_TEXT_CHARS:]
        return json.dumps(line, ensure_ascii=True)


def configure(level: str) -> None:
    """Send every log record of ``level`` (one of LEVELS) and above to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # At debug level the WebSocket library prints headers and frames: our credential and people's
    # terminals.
    logging.getLogger("websockets").setLevel(logging.WARNING)
