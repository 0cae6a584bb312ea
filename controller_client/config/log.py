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
_CREDENTIAL = re.compile(r"\b(ctl|hl|enr)_([A-Za-z0-9]+)_[A-Za-z0-9_-]+")


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
