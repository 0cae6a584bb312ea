"""A PostgreSQL server that belongs to a test: its own directory, port and process.

A test can stop it in any way, such as by a crash.
"""

import atexit
import functools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from tests.support.ports import free_port
from tests.support.processes import children_of
from tests.support.provisioning import Provisioned, fill
from tests.support.waiting import wait_until

_BINARIES = max(
    Path("/usr/lib/postgresql").glob("*/bin"),
    key=lambda path: float(path.parent.name),
    default=Path("/usr/bin"),
)
_START_SECONDS = 120.0
_STOP_SECONDS = 90.0
_SUPERUSER = "postgres"
PROVISIONED = "holdline"
"""The name of the migrated database with projects, tokens and a controller."""


def _identity() -> dict[str, Any]:
    """The user to run as: PostgreSQL refuses to run as root."""
    return (
        {"user": _SUPERUSER, "group": _SUPERUSER, "extra_groups": []} if os.geteuid() == 0 else {}
    )


class Postgres:
    """One server process with a directory of its own.

    Unless ``is_durable``, a commit is not forced to the disk: it survives the death of every
    process, and not that of the machine. ``options`` are settings such as ``max_connections=10``.
    """

    def __init__(
        self, *options: str, is_durable: bool = False, template: Path | None = None
    ) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="holdline-postgres-"))
        self.root.chmod(0o755)
        self.directory = self.root / "data"
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._options = [*options, *([] if is_durable else ["fsync=off", "full_page_writes=off"])]
        if os.geteuid() == 0:
            shutil.chown(self.root, _SUPERUSER, _SUPERUSER)
        if template is None:
            command = [
                _BINARIES / "initdb",
                "--no-sync",
                "-D",
                self.directory,
                "-U",
                _SUPERUSER,
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
            ]
            done = subprocess.run(
                command, check=False, capture_output=True, text=True, cwd="/", **_identity()
            )
            assert done.returncode == 0, done.stderr
        else:
            subprocess.run(["cp", "-a", template, self.directory], check=True)

    def url(self, database: str = PROVISIONED) -> str:
        """The value of DATABASE_URL for this database."""
        return f"postgres://{_SUPERUSER}:unused@127.0.0.1:{self.port}/{database}"

    def start(self) -> "Postgres":
        """Start PostgreSQL, and return when it answers."""
        self.start_only()
        wait_until(self._answers, _START_SECONDS, "PostgreSQL to answer")
        return self

    def start_only(self) -> None:
        """Start PostgreSQL unless it runs, and return at once.

        PostgreSQL may still be recovering then, and refuse connections.
        """
        if self.process is not None and self.process.poll() is None:
            return
        command = [
            str(_BINARIES / "postgres"),
            "-D",
            str(self.directory),
            "-p",
            str(self.port),
            "-h",
            "127.0.0.1",
        ]
        for option in (
            "unix_socket_directories=",
            "max_connections=300",
            "shared_buffers=64MB",
            "timezone=UTC",
            *self._options,
        ):
            command += ["-c", option]
        with (self.root / "postgres.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/", **_identity()
            )

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.root / "postgres.log").read_text()[-2000:]
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""
        with psycopg.connect(self.url(database), autocommit=True, connect_timeout=30) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Stop PostgreSQL, and return when none of its processes is left.

        SIGINT is PostgreSQL's fast stop. SIGQUIT is the immediate stop, which equals a crash.
        """
        if self.process is None or self.process.poll() is not None:
            return
        workers = children_of(self.process.pid)
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(number)
        self.process.wait(_STOP_SECONDS)
        wait_until(
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers),
            _STOP_SECONDS,
            "PostgreSQL's processes to be gone",
        )

    def restart(self, number: signal.Signals = signal.SIGQUIT) -> None:
        """Crash and start again; ``number`` is the signal that stops PostgreSQL."""
        self.stop(number)
        self.start()

    def remove(self) -> None:
        """Stop PostgreSQL and delete its files."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.root, ignore_errors=True)


@functools.cache
def _template(max_interactive_sessions: int) -> tuple[Path, Path, Provisioned]:
    """A stopped server's directory with a provisioned database, its keys and its credentials."""
    server = Postgres()
    keys = Path(tempfile.mkdtemp(prefix="holdline-keys-"))
    atexit.register(shutil.rmtree, server.root, ignore_errors=True)
    atexit.register(shutil.rmtree, keys, ignore_errors=True)
    server.start()
    try:
        server.execute(f"CREATE DATABASE {PROVISIONED}")
        provisioned = fill(keys, max_interactive_sessions, DATABASE_URL=server.url())
    finally:
        server.stop()
    return server.directory, keys, provisioned


def provisioned_postgres(
    *options: str, max_interactive_sessions: int = 200, is_durable: bool = False
) -> tuple[Postgres, Callable[[Path], Provisioned]]:
    """A server that has the database PROVISIONED and is not started yet.

    The second value is a function. It makes a directory the data directory of servers on this
    database, and returns their credentials.
    """
    directory, keys, provisioned = _template(max_interactive_sessions)

    def provide(data_dir: Path) -> Provisioned:
        shutil.copytree(keys, data_dir)
        return provisioned

    return Postgres(*options, is_durable=is_durable, template=directory), provide
