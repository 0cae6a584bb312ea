"""Measure latency against load: simulated controllers on PostgreSQL, Redis and server processes.

``python -m benchmarks.load``

Each session takes turns at its own pace (open loop: a turn counts from the moment it was due).
Controllers and callers are spread evenly over the server processes, so with two of them half of all
turns go through the process that does not hold the socket. ``--json`` adds the figures of this run
to a file for ``benchmarks.plot``.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness import in_ms, machine, percentile
from tests.support.databases.cluster import Cluster, running_backends
from tests.support.mcp.light_client import LightCaller, NotAnsweredError
from tests.support.processes import children_of, cpu_seconds, resident_bytes
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

_KIB = 1024


@dataclass
class Point:
    """One rate of one run; times in ms, processor time per turn."""

    controllers: int
    workers: int
    rate: float
    turns: int
    failed: int
    achieved: float
    p50: float
    p95: float
    p99: float
    worst: float
    server_cpu: float
    database_cpu: float
    hosts_cpu: float
    callers_cpu: float
    load_average: float


class Crowd:
    """A cluster without a daemon, and simulated hosts on it."""

    def __init__(self, cluster: Cluster, count: int, projects: int, directory: Path) -> None:
        self.cluster, self.count = cluster, count
        command = [sys.executable, "-m", "benchmarks.enrol", str(count), str(projects)]
        done = subprocess.run(
            command,
            cwd=PROJECT_ROOT,
            env=cluster.server_environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        self._enrolled: dict[str, tuple[str, str]] = json.loads(done.stdout.splitlines()[-1])
        self._directory = directory
        self.names = list(self._enrolled)
        self.tokens = {name: token for name, (_, token) in self._enrolled.items()}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.logs = [
            directory / f"hosts{number}.log" for number in range(len(cluster.worker_ports))
        ]

    def connect(self) -> None:
        """Start the hosts and wait until all are connected."""
        for number, log in enumerate(self.logs):
            mine = {name: self._enrolled[name][0] for name in self.names[number :: len(self.logs)]}
            self._launch(
                mine,
                self.cluster.worker_ports[number],
                self._directory / f"credentials{number}.json",
                log,
            )
        self.await_connected()

    def _launch(self, credentials: dict[str, str], port: int, file: Path, log: Path) -> None:
        file.write_text(json.dumps(credentials))
        command = [
            sys.executable,
            "-m",
            "benchmarks.simulated_hosts",
            f"ws://127.0.0.1:{port}/ws/controller/",
            str(file),
        ]
        with log.open("wb") as out:
            self.processes.append(
                subprocess.Popen(command, cwd=PROJECT_ROOT, stdout=out, stdin=subprocess.DEVNULL)
            )

    def welcomes(self) -> list[float]:
        """Return the moments of all WELCOMEs so far, on the monotonic clock."""
        return sorted(
            float(line)
            for log in self.logs
            if log.exists()
            for line in log.read_text().split("\n")[:-1]
        )

    def await_connected(self, earlier: int = 0) -> None:
        """Wait until each host was welcomed; do not count ``earlier`` WELCOMEs."""
        wait_until(
            lambda: len(self.welcomes()) >= earlier + self.count,
            180,
            "all simulated hosts to be connected",
        )

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def server_pids(self) -> list[int]:
        return [process.pid for process in self.cluster.server_processes()]

    def database_pids(self) -> list[int]:
        postmaster = self.cluster.backends.postgres.process
        assert postmaster is not None
        return [postmaster.pid, *children_of(postmaster.pid)]


@contextmanager
def crowd(count: int, workers: int, projects: int, **environment: str) -> Iterator[Crowd]:
    """Start a crowd, and end everything with the block."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    kind = type("Servers", (Cluster,), {"WORKER_COUNT": workers})
    with ExitStack() as on_exit:
        directory = Path(on_exit.enter_context(tempfile.TemporaryDirectory()))
        backends = on_exit.enter_context(running_backends(is_durable=True))
        cluster = kind(
            backends=backends, max_interactive_sessions=20_000, server_environment=environment
        )
        on_exit.callback(cluster.stop)
        cluster.start_server()
        found = Crowd(cluster, count, projects, directory)
        on_exit.callback(found.stop)
        yield found


class Sessions:
    """One session for each host, each with a caller of its own."""

    def __init__(self, hosts: Crowd, names: list[str]) -> None:
        ports = hosts.cluster.worker_ports
        # Callers and hosts are spread over the processes differently, so that the callers of each
        # process reach the hosts of both.
        self._callers = {
            name: LightCaller("127.0.0.1", ports[(n // 2) % len(ports)], hosts.tokens[name])
            for n, name in enumerate(names)
        }
        self._ids: dict[str, str] = {}
        self.seconds: list[float] = []
        self.failed = 0

    async def start(self) -> None:
        """Start all sessions, a few at a time."""
        gate = asyncio.Semaphore(16)

        async def one(name: str, caller: LightCaller) -> None:
            async with gate:
                started = await caller.call(
                    "start_interactive_command",
                    command="read loop",
                    controller=name,
                    lifetime_seconds=3000,
                )
                self._ids[name] = started["session_id"]

        await asyncio.gather(*(one(name, caller) for name, caller in self._callers.items()))

    async def take_turns(self, rate: float, seconds: float) -> None:
        """Take ``rate`` turns per second, summed over all sessions."""
        interval = len(self._callers) / rate
        self.seconds, self.failed = [], 0
        await asyncio.gather(
            *(
                self._turns(name, caller, interval, seconds)
                for name, caller in self._callers.items()
            )
        )

    async def _turns(self, name: str, caller: LightCaller, interval: float, seconds: float) -> None:
        due = time.monotonic() + random.uniform(0, interval)
        end = time.monotonic() + seconds
        number = 0
        while due < end:
            await asyncio.sleep(due - time.monotonic())
            number += 1
            line = f"w{number}"
            try:
                answer = await caller.call(
                    "send_command_input",
                    session_id=self._ids[name],
                    input_text=line + "\n",
                    wait_seconds=20,
                )
                is_right = answer["state"] == "awaiting_input" and f"got {line}" in answer["output"]
            except (NotAnsweredError, RuntimeError) as error:
                print(f"   {name}: {error}", file=sys.stderr)
                is_right = False
            if is_right:
                self.seconds.append(time.monotonic() - due)
            else:
                self.failed += 1
            due += interval

    def close(self) -> None:
        for caller in self._callers.values():
            caller.close()


async def measure_rate(hosts: Crowd, sessions: Sessions, rate: float, seconds: float) -> Point:
    """Measure one point of the curve."""
    parts = {
        "server": hosts.server_pids(),
        "database": hosts.database_pids(),
        "hosts": [process.pid for process in hosts.processes],
        "callers": [os.getpid()],
    }
    before = {name: sum(map(cpu_seconds, pids)) for name, pids in parts.items()}
    began = time.monotonic()
    await sessions.take_turns(rate, seconds)
    elapsed = time.monotonic() - began
    turns = len(sessions.seconds)
    cpu = {
        name: 1000 * (sum(map(cpu_seconds, pids)) - before[name]) / max(1, turns)
        for name, pids in parts.items()
    }
    p50, p95, p99 = (1000 * percentile(sessions.seconds, share) for share in (0.5, 0.95, 0.99))
    print(
        in_ms(f"{rate:6.0f} turns/s wanted", sessions.seconds)
        + f"   {turns / elapsed:.0f}/s, {sessions.failed} failed"
    )
    print(
        "   processor ms per turn: "
        + ", ".join(f"{name} {value:.2f}" for name, value in cpu.items())
    )
    worst = 1000 * max(sessions.seconds)
    return Point(
        hosts.count,
        len(hosts.server_pids()),
        rate,
        turns,
        sessions.failed,
        turns / elapsed,
        p50,
        p95,
        p99,
        worst,
        *cpu.values(),
        os.getloadavg()[0],
    )


def main() -> None:
    """Print latency and processor time per turn for each rate, and memory per idle controller."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--controllers", type=int, default=500)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--projects", type=int, default=20, help="a project's actions are one chain of audit rows"
    )
    parser.add_argument(
        "--active", type=float, default=1.0, help="share of the controllers that take turns"
    )
    parser.add_argument(
        "--rates",
        type=lambda text: [float(rate) for rate in text.split(",")],
        default=[10, 25, 50, 100, 150, 200, 300],
    )
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(machine())
    with crowd(options.controllers, options.workers, options.projects) as hosts:
        points = asyncio.run(_run(hosts, options))
    if options.json:
        earlier = json.loads(options.json.read_text()) if options.json.exists() else []
        options.json.write_text(json.dumps([*earlier, *map(asdict, points)], indent=1) + "\n")


async def warm_up(hosts: Crowd) -> None:
    """Serve some requests, so that each process has its threads and connections."""
    for number in range(len(hosts.cluster.worker_ports)):
        async with hosts.cluster.caller_at(number) as caller:
            for _ in range(30):
                await caller.call("list_controllers")


async def _run(hosts: Crowd, options: argparse.Namespace) -> list[Point]:
    names = hosts.names[: max(1, int(options.active * options.controllers))]
    await warm_up(hosts)
    base = sum(map(resident_bytes, hosts.server_pids()))
    await asyncio.to_thread(hosts.connect)
    await asyncio.sleep(5)
    grown = sum(map(resident_bytes, hosts.server_pids())) - base
    each = grown / options.controllers / _KIB
    print(
        f"{options.controllers} controllers connected: {each:.0f} KiB of server memory each   "
        "target <= 150"
    )
    sessions = Sessions(hosts, names)
    await sessions.start()
    await sessions.take_turns(min(options.rates), 3)
    points = [await measure_rate(hosts, sessions, rate, options.seconds) for rate in options.rates]
    sessions.close()
    return points


if __name__ == "__main__":
    main()
