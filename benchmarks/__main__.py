"""Measure what a call costs, beside a reference without storage and other checkouts of the project.

``python -m benchmarks`` prints one table. Blocks of all sides alternate, so that all of them see
the same machine: compare the figures of one run, and the ratios before the figures.
"""

import argparse
import asyncio
import fcntl
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import floor, told, workloads
from benchmarks.harness import machine
from benchmarks.sides import Side, product
from benchmarks.sides import floor as floor_side
from benchmarks.workloads import Figures
from tests.support.stack import PROJECT_ROOT, SERVERS

_LISTED_TITLE = "list_sessions(20)"
_ENDED_TITLE = "list_sessions(20) beside 10,000 ended"
Block = Callable[[Side], Awaitable[Figures]]


@dataclass(frozen=True)
class Workload:
    """One line of the table: its block, the figure that counts, and whether the floor can do it."""

    name: str
    title: str
    block: Block
    figure: str
    rounds: int
    has_floor: bool = False
    is_cluster: bool = False


def _workloads(options: argparse.Namespace) -> list[Workload]:
    size, rounds = options.size, options.rounds
    seconds, few = 5.0 * size, max(1, rounds // 3)
    calls, crowd = max(2, int(170 * size)), max(2, int(100 * size))

    def told_in(way: str) -> Block:
        return lambda side: told.told(side, way, calls)

    def crowd_of(sessions: int) -> Block:
        return lambda side: workloads.crowd(side, sessions, seconds)

    return [
        Workload("w0", "W0 list_controllers", lambda side: workloads.cheapest(side, calls), "p50",
                 rounds, has_floor=True),
        Workload("w1", "W1 true", lambda side: workloads.command(side, calls // 2), "p50", rounds,
                 has_floor=True),
        Workload("w2", "W2 turn", lambda side: workloads.turns(side, calls), "p50", rounds,
                 has_floor=True),
        *(Workload(f"told-{way}", f"a prompt of {way} is told", told_in(way), "p50", few)
          for way in told.WAYS),
        Workload("w5", f"W5 {crowd} sessions", crowd_of(crowd), "turns/s", few, has_floor=True),
        Workload("readers", "32 readers of 32 KB",
                 lambda side: workloads.readers(side, max(2, int(32 * size)), seconds), "p99", few),
        Workload("w4", "W4 seq on a terminal",
                 lambda side: workloads.bulk(side, int(12_600_000 * size)), "share %", few),
        Workload("idle", f"W6 {crowd} idle sessions",
                 lambda side: workloads.idle(side, crowd, 2 * seconds), "all %", 1),
        Workload("storage", f"W5 {crowd // 2} sessions, SQLite", crowd_of(crowd // 2), "turns/s",
                 few),
        Workload("cluster", f"W5 {crowd // 2} sessions, PostgreSQL and Redis",
                 crowd_of(crowd // 2), "turns/s", few, is_cluster=True),
        Workload("listed", _LISTED_TITLE, lambda side: workloads.listed(side, calls), "p50",
                 rounds),
        Workload("ended", _ENDED_TITLE,
                 lambda side: workloads.listed(side, calls), "p50", rounds),
    ]  # fmt: skip


class Run:
    """The figures of one run: workload -> side -> figures of each block."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.blocks: dict[str, dict[str, list[Figures]]] = {}

    def measure(self, workload: Workload, sides: list[Side]) -> None:
        """Measure blocks of a workload in rotation."""
        found = self.blocks.setdefault(workload.title, {})
        for number in range(workload.rounds):
            for side in sides[number % len(sides) :] + sides[: number % len(sides)]:
                with self._alone(side):
                    figures = asyncio.run(workload.block(side))
                found.setdefault(side.name, []).append(figures)
                print(f"   {workload.title}, {side.name}: {_line(figures)}", file=sys.stderr)

    @contextmanager
    def _alone(self, side: Side) -> Iterator[None]:
        """Take the lock that other measurements of this machine take, and priority if asked."""
        with ExitStack() as on_exit:
            if self._options.lock:
                lock = on_exit.enter_context(self._options.lock.open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX)
            if self._options.real_time:
                side.prioritise(is_real_time=True)
                on_exit.callback(side.prioritise, is_real_time=False)
            yield

    def medians(self, title: str) -> dict[str, Figures]:
        """The medians of all blocks, by side."""
        return {
            name: {
                figure: statistics.median(block[figure] for block in blocks) for figure in blocks[0]
            }
            for name, blocks in self.blocks.get(title, {}).items()
        }


def _line(figures: Figures) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in figures.items())


def print_table(run: Run, chosen: list[Workload]) -> None:
    """Print a Markdown table: a line for each workload and side, and the ratio to the first."""
    print("| Workload | Side | Counts | Ratio to the first | All figures, medians |")
    print("|---|---|---|---|---|")
    for workload in chosen:
        medians = run.medians(workload.title)
        first = next((figures[workload.figure] for figures in medians.values()), 0.0)
        for name, figures in medians.items():
            value = figures[workload.figure]
            ratio = f"{value / first:.2f}" if first else ""
            unit = "ms " if workload.figure.startswith("p") else ""
            print(
                f"| {workload.title} | {name} | {value:.3g} {unit}{workload.figure} | {ratio} | "
                f"{_line(figures)} |"
            )


def print_growth(run: Run) -> None:
    """Print what ended sessions add to a list, for each side."""
    beside = run.medians(_ENDED_TITLE)
    for name, alone in run.medians(_LISTED_TITLE).items():
        if name in beside:
            ratio = beside[name]["p50"] / alone["p50"]
            print(f"{name}: a list beside 10,000 ended sessions takes {ratio:.2f} times as long")


def print_raw_turns(calls: int) -> None:
    """Print what a turn costs somebody who is told the prompt and stores nothing."""
    seconds = floor.raw_turns(calls)
    print(f"A turn on a bare PTY, prompt told: {1000 * statistics.median(seconds):.3f} ms")


def _simulated(checkout: Path, options: argparse.Namespace) -> None:
    """500 simulated controllers on PostgreSQL and Redis: ``benchmarks.load`` of that checkout."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "load.json"
        command = [sys.executable, "-m", "benchmarks.load", "--workers", "1"]
        command += ["--controllers", str(max(2, int(500 * options.size))), "--rates", options.rates]
        command += ["--seconds", str(8 * options.size), "--json", str(file)]
        subprocess.run(command, cwd=checkout, check=True, stdout=sys.stderr)
        for point in json.loads(file.read_text()):
            print(
                f"{checkout.name}: {point['controllers']} simulated controllers at "
                f"{point['rate']:g} turns/s: reached {point['achieved']:.0f}, p50 "
                f"{point['p50']:.0f}, p95 {point['p95']:.0f}, p99 {point['p99']:.0f} ms, "
                f"{point['failed']} failed; servers {point['server_cpu']:.2f}, PostgreSQL "
                f"{point['database_cpu']:.2f} ms of processor time per turn"
            )


def _versions() -> str:
    names = ("Django", "daphne", "uvicorn", "mcp", "pydantic")
    found = [f"{name} {importlib.metadata.version(name)}" for name in names]
    return f"{platform.platform()}, Python {platform.python_version()}, {', '.join(found)}"


def main() -> None:
    """Measure the chosen workloads of every side, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--server", choices=SERVERS, default=SERVERS[0])
    add("--against", type=Path, action="append", default=[], metavar="DIR",
        help="another checkout, measured in rotation; may be repeated")  # fmt: skip
    add("--only", type=lambda text: text.split(","), help="workloads by their short names")
    add("--rounds", type=int, default=6, help="blocks of the short workloads")
    add("--size", type=float, default=1.0, help="share of the usual size of each block")
    add("--rates", default="150,250", help="turns per second of the simulated controllers")
    add("--real-time", action="store_true", help="real-time priority for each block (root)")
    add("--lock", type=Path, help="a file that other measurements lock, too")
    add("--json", type=Path, help="where the figures of all blocks are written")
    options = parser.parse_args()
    chosen = [one for one in _workloads(options) if not options.only or one.name in options.only]
    checkouts = [PROJECT_ROOT, *(path.resolve() for path in options.against)]
    run = Run(options)
    print(f"{machine()}\n{_versions()}; server: {options.server}\n")
    print_raw_turns(max(2, int(500 * options.size)))
    _measure_all(run, chosen, checkouts, options)
    print_table(run, chosen)
    print_growth(run)
    if not options.only or "simulated" in options.only:
        for checkout in checkouts:
            _simulated(checkout, options)
    if options.json:
        options.json.write_text(json.dumps(run.blocks, indent=1) + "\n")


def _measure_all(
    run: Run, chosen: list[Workload], checkouts: list[Path], options: argparse.Namespace
) -> None:
    embedded = [one for one in chosen if not one.is_cluster]
    with ExitStack() as on_exit:
        sides = [
            on_exit.enter_context(product(checkout, server=options.server))
            for checkout in (checkouts if embedded else [])
        ]
        reference = on_exit.enter_context(floor_side())
        for workload in embedded:
            if workload.name == "ended":
                for side in sides:
                    side.add_ended(10_000)
            run.measure(workload, [*([reference] if workload.has_floor else []), *sides])
    for workload in chosen:
        if workload.is_cluster:
            with ExitStack() as on_exit:
                clusters = [
                    on_exit.enter_context(product(path, server=options.server, is_cluster=True))
                    for path in checkouts
                ]
                run.measure(workload, clusters)


if __name__ == "__main__":
    main()
