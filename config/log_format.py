"""One JSON object per log record: whatever a message contains, it cannot forge a second line or reach a terminal."""

import json
import logging
from datetime import UTC, datetime

MAX_MESSAGE_CHARS = 8192


class JsonFormatter(logging.Formatter):
    """Time (UTC), level, logger and message; the traceback where there is one. Everything outside ASCII is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage()[:MAX_MESSAGE_CHARS],
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)[-MAX_MESSAGE_CHARS:]
        return json.dumps(line, ensure_ascii=True)
