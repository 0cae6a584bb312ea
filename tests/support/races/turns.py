"""Takes turns with programs that log when they begin to read, and judges each claim by that."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.hosts.bare_terminal import BareTerminal

SHORT_SECONDS: Final = 0.03
LONG_SECONDS: Final = 0.8
PATIENCE_SECONDS: Final = 20.0
_TURNS_PER_PROGRAM: Final = 500
_PROGRAM: Final = Path(__file__).parents[2] / "programs/fixtures/clocked/takes_turns.py"
_SHELL: Final = """PROMPT_COMMAND='echo ${EPOCHREALTIME/./}000 >> LOG'
PS1='next? '
"""


@dataclass(frozen=True)
class Turn:
    """One claim: its evidence, and the time since the program's read; less than zero is early."""

    evidence: str
    seconds: float
    processor_seconds: float = 0.0
    """The processor time of all looks of the turn."""

    @property
    def is_early(self) -> bool:
        """True if the program was still at work."""
        return self.seconds < 0


MISSED: Final = Turn("missed", PATIENCE_SECONDS)


def _python(mode: str, log: Path, seed: int, most_seconds: float) -> list[str]:
    return [sys.executable, str(_PROGRAM), mode, str(log), str(seed), str(most_seconds)]


def _script(mode: str, log: Path, seed: int, most_seconds: float) -> list[str]:
    return ["script", "-qc", " ".join(_python("read", log, seed, most_seconds)), "/dev/null"]


def _bash(mode: str, log: Path, seed: int, most_seconds: float) -> list[str]:
    startup = log.with_suffix(".rc")
    startup.write_text(_SHELL.replace("LOG", str(log)))
    return ["bash", "--noprofile", "--rcfile", str(startup), "-i"]


MODES: Final[dict[str, Callable[[str, Path, int, float], list[str]]]] = {
    **dict.fromkeys(("read", "key", "select", "timed select", "epoll", "thread", "loop"), _python),
    "script": _script,
    "bash": _bash,
}


class Race:
    """One program, and the turns that are taken with it."""

    def __init__(self, mode: str, terminal: BareTerminal, log: Path, most_seconds: float) -> None:
        self._is_shell = mode == "bash"
        self._terminal = terminal
        self._log = log
        self._most_seconds = most_seconds

    def turn(self, number: int) -> Turn:
        """Wait for the claim of one turn, judge it, and type the next line."""
        self._terminal.look_seconds = 0.0
        claimed = self._terminal.wait(PATIENCE_SECONDS)
        now, looked = self._now(), self._terminal.look_seconds
        begun = self._begun(number)
        self._until_begun(number)
        self._terminal.send(self._line(number))
        if not claimed.is_waiting:
            return MISSED
        return Turn(claimed.evidence or "", (now - begun) / 1e9 if begun else -1.0, looked)

    def _now(self) -> int:
        # bash knows no other clock.
        return time.time_ns() if self._is_shell else time.monotonic_ns()

    def _begun(self, number: int) -> int:
        lines = self._log.read_text().split() if self._log.exists() else []
        return int(lines[number]) if len(lines) > number else 0

    def _until_begun(self, number: int) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._begun(number) and time.monotonic() < deadline:
            self._terminal.step(0.005)

    def _line(self, number: int) -> bytes:
        if not self._is_shell:
            return b"\n"
        seconds = self._most_seconds * (number % 7) / 7
        work = (f"sleep {seconds:.3f}", ":", f"(sleep {seconds:.3f}); echo done", "/bin/true")
        return f"{work[number % len(work)]}\n".encode()


def turns(mode: str, count: int, most_seconds: float, seed: int = 0) -> Iterator[Turn]:
    """Take turns in one mode, with work of at most ``most_seconds`` each."""
    with tempfile.TemporaryDirectory(prefix="holdline-race-") as directory:
        for begin in range(0, count, _TURNS_PER_PROGRAM):
            log = Path(directory) / str(begin)
            argv = MODES[mode](mode, log, seed + begin, most_seconds)
            with BareTerminal(argv) as terminal:
                race = Race(mode, terminal, log, most_seconds)
                for number in range(min(_TURNS_PER_PROGRAM, count - begin)):
                    yield race.turn(number)
