"""The whole product scaled out: PostgreSQL, Redis, two server processes behind a proxy, a daemon.

A ``Cluster`` is a ``Stack``: a test of a stack runs on it unchanged. ``tests.on_cluster`` runs such
tests on a cluster.
"""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.support.databases.database import PostgresDatabase
from tests.support.databases.postgres import PROVISIONED, provisioned_postgres
from tests.support.databases.redis_server import Redis
from tests.support.mcp.client import Caller, connect
from tests.support.ports import free_port
from tests.support.provisioning import Provisioned
from tests.support.proxies.balancer import Balancer
from tests.support.stack import LIVE, Stack, accepts
from tests.support.waiting import wait_until

WORKERS = 2
_START_SECONDS = 120.0
_numbers = itertools.count(1)


class Backends:
    """PostgreSQL and Redis for one or more clusters; ``options`` are settings of PostgreSQL."""

    def __init__(
        self, *options: str, max_interactive_sessions: int = 200, is_durable: bool = False
    ) -> None:
        self.max_interactive_sessions = max_interactive_sessions
        self.postgres, self._provide = provisioned_postgres(
            *options, max_interactive_sessions=max_interactive_sessions, is_durable=is_durable
        )
        self.redis = Redis()

    def start(self) -> Self:
        """Start both, and return when both answer."""
        self.postgres.start()
        self.redis.start()
        LIVE.append(self)
        return self

    def start_again(self) -> None:
        """Start the one that does not run, or both."""
        self.postgres.start()
        self.redis.start()

    def process_ids(self) -> set[int]:
        """The processes that are to run now."""
        return {
            process.pid
            for process in (self.postgres.process, self.redis.process)
            if process is not None
        }

    def provide(self, data_dir: Path, max_interactive_sessions: int) -> tuple[str, Provisioned]:
        """Make a provisioned database and its ``data_dir``; return its url and credentials."""
        name = f"stack_{next(_numbers)}"
        self.postgres.execute(f"CREATE DATABASE {name} TEMPLATE {PROVISIONED}")
        if max_interactive_sessions != self.max_interactive_sessions:
            limit = (
                "UPDATE projects_project SET max_interactive_sessions = "
                f"{int(max_interactive_sessions)} WHERE name = 'first'"
            )
            self.postgres.execute(limit, name)
        return self.postgres.url(name), self._provide(data_dir)

    def remove(self) -> None:
        LIVE.remove(self)
        self.redis.remove()
        self.postgres.remove()


class Cluster(Stack):
    """Two server processes behind a proxy at ``port``. They are called workers, numbered from 0.

    ``server`` is worker 0. ``shared`` are the backends of all clusters that do not bring their own.
    A test that stops or breaks its backends must bring its own.
    """

    WORKER_COUNT: ClassVar[int] = WORKERS
    shared: ClassVar[Backends | None] = None

    def __init__(self, *, backends: Backends | None = None, **options: Any) -> None:
        found = backends or self.shared
        assert found is not None, "no backends: give some, or use the fixture"
        self.backends = found
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * self.WORKER_COUNT
        self.worker_ports = [free_port() for _ in range(self.WORKER_COUNT)]
        super().__init__(**options)
        self.balancer = Balancer(self.port, self.worker_ports)

    def _provision(self, max_interactive_sessions: int) -> None:
        url, self.provisioned = self.backends.provide(self.data_dir, max_interactive_sessions)
        self.database = PostgresDatabase(url)
        self._server_environment = {
            "DATABASE_URL": url,
            "REDIS_URL": self.backends.redis.url,
            **self._server_environment,
        }

    # ---- workers ---------------------------------------------------------------------------------

    def start_server(self, **environment: str) -> None:
        """Start every worker, and return when all accept connections."""
        numbers = range(self.WORKER_COUNT)
        for number in numbers:
            self.launch_worker(number, **environment)
        for number in numbers:
            self.await_worker(number)

    def launch_worker(self, number: int, **environment: str) -> None:
        """Start one worker without waiting for it."""
        self.workers[number] = self._launch(
            self.worker_ports[number], f"server{number}.log", environment
        )
        self.server = self.workers[0]

    def await_worker(self, number: int) -> None:
        """Return when the worker accepts connections."""
        process = self.workers[number]
        assert process is not None
        self._wait_started(
            process,
            lambda: accepts(self.worker_ports[number]),
            f"worker {number} to accept connections",
        )

    def start_worker(self, number: int, **environment: str) -> None:
        """Start one worker, and return when it accepts connections."""
        self.launch_worker(number, **environment)
        self.await_worker(number)

    def kill_worker(self, number: int) -> None:
        """Kill one worker with SIGKILL, and reap it."""
        process = self.workers[number]
        assert process is not None
        process.kill()
        process.wait(90)

    def server_processes(self) -> list[subprocess.Popen[bytes]]:
        """The workers that were started."""
        return [process for process in self.workers if process is not None]

    def socket_worker(self) -> int:
        """The number of the worker that holds the daemon's socket; waits until one does."""
        port = wait_until(
            lambda: self.balancer.sockets[-1:], _START_SECONDS, "the daemon to be connected"
        )[0]
        return self.worker_ports.index(port)

    def other_worker(self) -> int:
        """The number of a worker that does not hold the daemon's socket."""
        return (self.socket_worker() + 1) % self.WORKER_COUNT

    def worker_url(self, number: int) -> str:
        """The MCP endpoint of one worker, past the proxy."""
        return f"http://127.0.0.1:{self.worker_ports[number]}/mcp"

    def caller_at(
        self, number: int, token: str | None = None
    ) -> AbstractAsyncContextManager[Caller]:
        """An MCP client session with one worker, past the proxy."""
        return connect(self.worker_url(number), token or self.provisioned.token)

    def logs(self, lines: int = 60) -> str:
        """The last lines of all logs, those of the backends included."""
        parts = [super().logs(lines)]
        for log in (
            self.backends.postgres.root / "postgres.log",
            self.backends.redis.root / "redis.log",
        ):
            if log.exists():
                parts += [
                    f"---- {log.name}",
                    *log.read_text(errors="replace").splitlines()[-lines:],
                ]
        return "\n".join(parts)

    def stop(self) -> None:
        super().stop()
        self.balancer.close()


@contextmanager
def running_backends(*options: str, is_durable: bool = False) -> Iterator[Backends]:
    """Started backends that are removed after the block."""
    backends = Backends(*options, is_durable=is_durable)
    try:
        yield backends.start()
    finally:
        backends.remove()


@contextmanager
def running_cluster(**options: Any) -> Iterator[Cluster]:
    """A started cluster that is always stopped after the block.

    It has backends of its own unless ``backends`` are given. Its logs are printed if the block
    fails.
    """
    with ExitStack() as on_exit:
        if "backends" not in options:
            options["backends"] = on_exit.enter_context(running_backends())
        cluster = Cluster(**options)
        on_exit.callback(cluster.stop)
        try:
            yield cluster.start()
        except BaseException:
            sys.stderr.write(cluster.logs() + "\n")
            raise
