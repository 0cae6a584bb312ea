"""The filter of a board: which rows a person wants to see. Pure."""

import re
from datetime import datetime, timedelta
from typing import Final

from console.live.messages import Row, WatchBoard

_SPAN: Final = re.compile(r"(\d{1,6})([smhd])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def wants(wanted: WatchBoard, row: Row, now: datetime) -> bool:
    """True if the row is one that the person wants. The row has no text that they may not see."""
    return (
        wanted.waits in ("", row.waits)
        and wanted.host in ("", row.host)
        and (not wanted.since or _is_silent(row, wanted.since, now))
        and (not wanted.q or _has_words(row, wanted.q))
    )


def _is_silent(row: Row, since: str, now: datetime) -> bool:
    return now - datetime.fromisoformat(row.since) >= _span_of(since)


def _span_of(text: str) -> timedelta:
    """The time that a text such as ``5m`` names; none for any other text."""
    found = _SPAN.fullmatch(text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else timedelta()


def _has_words(row: Row, words: str) -> bool:
    text = f"{row.host} {row.prompt} {row.command}".lower()
    return all(word in text for word in words.lower().split())
