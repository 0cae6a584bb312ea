"""The clock of some processes, which can be set while they run.

A library of our own, because libfaketime also changes how threads wait: with it, two busy threads
of Python take the interpreter from each other without end, and a server answers in seconds.
"""

import os
import struct
from pathlib import Path
from typing import Final

from chaos.plant import processes
from chaos.plant.processes import Command

_SOURCE: Final = Path(__file__).with_name("clock.c")
_OFFSET: Final = struct.Struct("=q")


async def make_library(directory: Path) -> Path:
    """Compile the library that makes a clock wrong, and return where it is."""
    library = directory / "clock.so"
    arguments = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE)]
    await processes.run(Command(arguments, dict(os.environ), directory))
    return library


class Clock:
    """A clock that is off by some seconds. The monotonic clock is left alone."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(_OFFSET.pack(0))

    def variables(self, library: Path) -> dict[str, str]:
        """The variables of a process that has this clock."""
        return {"LD_PRELOAD": str(library), "CHAOS_CLOCK": str(self._file)}

    def set(self, seconds: int) -> None:
        """Let the clock be off by so many seconds from now on."""
        # In place: the processes have these eight bytes in their memory.
        with self._file.open("r+b") as file:
            file.write(_OFFSET.pack(seconds))
