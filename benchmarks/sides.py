"""What is measured: checkouts of the project, and the reference without storage.

Each side runs in processes of its own. Its processor time is told apart by server, daemon, holders
(with their programs once these have ended) and databases.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.mcp.light_client import LightCaller
from tests.support.ports import free_port
from tests.support.processes import children_of, descendants_of
from tests.support.stack import PROJECT_ROOT

SESSION = 'bash -c \'while read -p "> " x; do echo "got $x"; done\''
"""The program of all turns: it answers at once and asks again. Nobody is told its prompt."""
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Side:
    """One server with its daemon. ``told`` is what the process that started them printed."""

    name: str
    process: subprocess.Popen[str]
    told: dict[str, Any]
    is_floor: bool = False
    figures: dict[str, list[float]] = field(default_factory=dict)

    def caller(self) -> LightCaller:
        """A caller with a connection of its own."""
        return LightCaller("127.0.0.1", self.told["port"], self.told.get("token", ""))

    def add_ended(self, count: int) -> None:
        """Add ended sessions to its database."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"ended {count}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def parts(self) -> dict[str, list[int]]:
        """Its processes, by their part in the work."""
        daemon = self.told["daemon"]
        fork_servers = children_of(daemon)
        holders = [pid for server in fork_servers for pid in (server, *children_of(server))]
        parts = {"server": list(self.told["servers"]), "daemon": [daemon], "holders": holders}
        for name in ("postgres", "redis"):
            if name in self.told:
                parts[name] = [self.told[name], *children_of(self.told[name])]
        return parts

    def holders(self) -> list[int]:
        """The processes that hold a session or are ready to."""
        return [pid for server in children_of(self.told["daemon"]) for pid in children_of(server)]

    def spent(self) -> dict[str, float]:
        """Processor seconds of each part so far, with those of its ended children."""
        return {name: sum(map(_seconds, pids)) for name, pids in self.parts().items()}

    def prioritise(self, *, is_real_time: bool) -> None:
        """Give all its threads, and those of this process, real-time priority, or take it away."""
        kind = os.SCHED_FIFO if is_real_time else os.SCHED_OTHER
        rank = os.sched_param(10 if is_real_time else 0)
        roots = {os.getpid(), *(pid for pids in self.parts().values() for pid in pids)}
        for pid in roots.union(*map(descendants_of, (self.told["daemon"],))):
            for thread in _threads(pid):
                try:
                    os.sched_setscheduler(thread, kind, rank)
                except ProcessLookupError:
                    continue

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def _threads(pid: int) -> list[int]:
    try:
        return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]
    except FileNotFoundError:
        return []


def _seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / _TICKS


@contextmanager
def product(
    checkout: Path = PROJECT_ROOT, *, server: str = "daphne", is_cluster: bool = False
) -> Iterator[Side]:
    """The product of a checkout, on SQLite or on PostgreSQL and Redis."""
    command = [sys.executable, str(PROJECT_ROOT / "benchmarks/served.py"), server]
    command.append("cluster" if is_cluster else "embedded")
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    with _started(_title(checkout), command, checkout, environment) as side:
        yield side


@contextmanager
def floor() -> Iterator[Side]:
    """The reference of ``benchmarks.floor``."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.floor", str(port)]
    with _started("floor", command, PROJECT_ROOT, dict(os.environ)) as side:
        side.told["port"], side.is_floor = port, True
        yield side


@contextmanager
def _started(
    name: str, command: list[str], directory: Path, environment: dict[str, str]
) -> Iterator[Side]:
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{name} did not start: {process.wait()}")
    side = Side(name, process, json.loads(line))
    try:
        yield side
    finally:
        side.stop()


def _title(checkout: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(checkout), "describe", "--always", "--dirty"],
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip() or checkout.name
