"""The history of a run: every call, fault and look, one JSON line each, in one file."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

Json = dict[str, object]

FILE: Final = "history.jsonl"


class History:
    """Appends what happens. A line is written at once, so that a run that dies leaves them all."""

    def __init__(self, directory: Path) -> None:
        self._file = (directory / FILE).open("a", encoding="utf-8")

    def note(self, kind: str, **what: object) -> None:
        """Write one event down, with the time of the monotonic clock."""
        line = json.dumps({"kind": kind, "at": round(time.monotonic(), 6), **what})
        self._file.write(line + "\n")
        self._file.flush()

    def close(self) -> None:
        """Close the file of the history."""
        self._file.close()


def events(directory: Path) -> Iterator[Json]:
    """Every event of a run, in the order in which they were written down."""
    with (directory / FILE).open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
