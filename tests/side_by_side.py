"""All tests, as several runs of pytest side by side, because a test mostly waits.

Each run has servers of its own. Five go on at a time, and the next one begins when one is over.
``bin/test`` ends with ``python -m tests.side_by_side [arguments for each of them]``. When all runs
are over, their output is printed: failed runs whole and last, and the names of the failed tests at
the very end.
"""

import re
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_INSTALLS: Final = "tests/integration/installs"
_PROGRAMS: Final = ("tests/programs", "tests/chaos")
_OUTAGES: Final = ("tests/cluster", "tests/browser")
# In a container engine, by a command of its own.
_CONTAINERS: Final = "tests/containers"
_WITH_OWN_RUN: Final = ("tests/faults", "tests/integration", _CONTAINERS, *_PROGRAMS, *_OUTAGES)
_CLUSTER: Final = ("-p", "tests.on_cluster")
# What is under test is the host's side. They would make one long run of two.
_HOSTS: Final = tuple(
    f"tests/integration/{name}"
    for name in ("daemon", "holder", "monitors", "overdue", "spoiled", "two_users")
)
# The longest ones begin first, so that all cores have work until the end. Those that mostly wait
# are the very first: they take as long whatever goes on beside them.
RUNS: Final = {
    "programs and chaos": _PROGRAMS,
    "faults": ("tests/faults",),
    "integration": (
        "tests/integration",
        *(f"--ignore={path}" for path in (_INSTALLS, *_HOSTS)),
    ),
    "hosts": _HOSTS,
    "outages, browser and installs": (*_OUTAGES, _INSTALLS),
    "integration on the cluster": (*_CLUSTER, "--part", "integration", "--part", "units"),
    "faults on the cluster": (*_CLUSTER, "--part", "faults"),
    # All tests that have no run of their own, so that none is forgotten.
    "everything else": ("tests", *(f"--ignore={path}" for path in _WITH_OWN_RUN)),
}
_AT_ONCE: Final = 5
_PROGRESS_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
_SHARE: Final = re.compile(r"(\[ *\d+%\])$")
_END: Final = re.compile(r"^=+ (.*) =+$")
_FAILED: Final = re.compile(r"(FAILED|ERROR) ")


@dataclass(frozen=True)
class Run:
    """One run of pytest, whose output goes to a file."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    def lines(self) -> list[str]:
        """The lines of output so far."""
        return self.log.read_text(errors="replace").splitlines()

    @property
    def is_under_way(self) -> bool:
        """True until the run is over."""
        return self.process.poll() is None

    def progress(self) -> str:
        """The share of tests that are done, or the result of the run."""
        if self.is_under_way:
            return self._last(_SHARE, "[  0%]")
        return self._last(_END, f"exit code {self.process.returncode}")

    def _last(self, pattern: re.Pattern[str], otherwise: str) -> str:
        return next(
            (found[1] for line in reversed(self.lines()) if (found := pattern.search(line))),
            otherwise,
        )


def _begun(name: str, directory: Path, arguments: list[str]) -> Run:
    log = directory / name
    command = [sys.executable, "-m", "pytest", *RUNS[name], *arguments]
    with log.open("wb") as out:
        return Run(
            name,
            log,
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            ),
        )


def _take(runs: list[Run], directory: Path, arguments: list[str]) -> None:
    """Begin and await all runs, and print their progress from time to time."""
    waiting, began, told = list(RUNS), time.monotonic(), 0.0
    while waiting or any(run.is_under_way for run in runs):
        under_way = [run for run in runs if run.is_under_way]
        if waiting and len(under_way) < _AT_ONCE:
            runs.append(_begun(waiting.pop(0), directory, arguments))
            continue
        with suppress(subprocess.TimeoutExpired):
            under_way[0].process.wait(_LOOK_SECONDS)
        if (elapsed := time.monotonic() - began) >= told + _PROGRESS_SECONDS:
            told = elapsed
            _tell_progress(runs, elapsed)


def _tell_progress(runs: list[Run], elapsed: float) -> None:
    shares = ", ".join(f"{run.name}: {run.progress()}" for run in runs)
    sys.stdout.write(f"{elapsed:5.0f} s  {shares}\n")
    sys.stdout.flush()


def _report(runs: list[Run]) -> None:
    failed = [run for run in runs if run.process.returncode]
    for run in runs:
        shown = run.lines() if run in failed else [run.progress()]
        sys.stdout.write("\n".join((f"==> {run.name}", *shown, "")))
    for run in failed:
        found = [line for line in run.lines() if _FAILED.match(line)]
        sys.stdout.write("\n".join((f"==> failed: {run.name}, {run.progress()}", *found, "")))


def main(arguments: list[str]) -> int:
    """Run all tests, and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="holdline-runs-") as directory:
        runs: list[Run] = []
        try:
            _take(runs, Path(directory), arguments)
        finally:
            # An interrupt from the terminal reaches the runs too. Each ends what it has started.
            for run in runs:
                run.process.wait()
        runs.sort(key=lambda run: run.process.returncode != 0)
        _report(runs)
        return int(any(run.process.returncode for run in runs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
