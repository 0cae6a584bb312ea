"""The clock of some processes, which can be set while they run (libfaketime)."""

from pathlib import Path


class Clock:
    """A clock that is off by some seconds. The monotonic clock is left alone."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def variables(self, library: Path) -> dict[str, str]:
        """The variables of a process that has this clock."""
        return {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
        }

    def set(self, seconds: int) -> None:
        """Let the clock be off by so many seconds from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.replace(self._file)
