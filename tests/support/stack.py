"""The whole product on one machine: a Daphne process, a daemon process and their files."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from tests.support.accounts import Account, host_libraries, interpreter_for
from tests.support.databases.database import Database
from tests.support.mcp.client import Caller, connect
from tests.support.ports import free_port
from tests.support.processes import (
    all_pids,
    children_of,
    is_running,
    open_descriptors,
    pids_with_environment,
    send_signal,
)
from tests.support.provisioning import Provisioned, provision
from tests.support.running.warm_start import start
from tests.support.waiting import wait_until

PROJECT_ROOT = Path(__file__).resolve().parents[2]
_START_SECONDS = 240.0
_STOP_SECONDS = 10.0
"""The time that a process is given to end by itself."""
_GONE_SECONDS = 90.0
"""The time in which a busy machine has removed a process that was killed."""
SERVERS = ("daphne", "uvicorn")
RUNSERVER = "runserver"
_CREDENTIAL_SUFFIX = ".credential"


def accepts(port: int) -> bool:
    """True if somebody listens on this port of the loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def server_command(
    server: str, port: int, application: str = "config.asgi:application"
) -> list[str]:
    """The command line of a server process; ``server`` is one of SERVERS, or RUNSERVER."""
    if server == RUNSERVER:
        return [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"]
    chosen = ["env", f"HOLDLINE_SERVER={server}", sys.executable, "-m", "config.server"]
    return [*chosen, "--port", str(port), application]


class Live(Protocol):
    """Something that runs processes for tests, such as a stack."""

    def process_ids(self) -> set[int]:
        """The processes that are to run now."""


LIVE: list[Live] = []
"""Stacks and backends that have not been stopped yet."""


class Stack:
    """A server and a daemon that can be killed, stopped and started again.

    ``SERVER_KIND``, one of SERVERS, serves ``APPLICATION``, and starts warm if ``IS_WARM``.
    ``account``: the daemon runs as that ordinary user. ``run_as``: its programs run as that one.
    ``daemon_port``: where the daemon connects if not to the server itself, such as a proxy.
    ``daemon_prefix`` stands before the daemon's command line. ``root`` holds ``data`` (server),
    ``host`` (daemon's state), the logs of both processes, and the directories of logs that may be
    monitored.
    """

    SERVER_KIND: ClassVar[str] = "daphne"
    APPLICATION: ClassVar[str] = "config.asgi:application"
    IS_WARM: ClassVar[bool] = False

    def __init__(
        self,
        *,
        account: Account | None = None,
        run_as: Account | None = None,
        max_interactive_sessions: int = 200,
        port: int | None = None,
        daemon_port: int | None = None,
        server_environment: dict[str, str] | None = None,
        daemon_prefix: Sequence[str] = (),
    ) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="holdline-stack-"))
        self.root.chmod(0o711)
        self.account, self.run_as = account, run_as
        self.port = port or free_port()
        self.daemon_port = daemon_port or self.port
        self.data_dir, self.state_dir = self.root / "data", self.root / "host"
        self.session_logs, self.log_root = self.root / "ssk-sessions", self.root / "logs"
        self._server_environment = server_environment or {}
        self._daemon_prefix = tuple(daemon_prefix)
        self.provisioned: Provisioned
        self.database: Database
        self._provision(max_interactive_sessions)
        self.server: subprocess.Popen[bytes] | None = None
        self.daemon: subprocess.Popen[bytes] | None = None
        self._make_state_dir()
        LIVE.append(self)

    def _provision(self, max_interactive_sessions: int) -> None:
        """Set ``provisioned`` and ``database``, and make ``data_dir``."""
        self.provisioned = provision(self.data_dir, max_interactive_sessions)
        self.database = Database(self.data_dir / "db.sqlite3")

    def _make_state_dir(self) -> None:
        self.log_root.mkdir()
        self.state_dir.mkdir(mode=0o700)
        self.credential_file = self.root / f"host{_CREDENTIAL_SUFFIX}"
        self.credential_file.touch(mode=0o600)
        self.credential_file.write_text(self.provisioned.credential + "\n")
        if self.run_as:
            self.run_as.write_policy(self.state_dir)
        if self.account:
            for path in (self.state_dir, self.credential_file, *self.state_dir.iterdir()):
                os.chown(path, self.account.uid, self.account.gid)

    # ---- server ----------------------------------------------------------------------------------

    def server_environment(self, **extra: str) -> dict[str, str]:
        """The environment of the server's processes.

        Any other process that has this environment works on the same database.
        """
        # The server must not get the settings of the test process.
        others = {"DJANGO_SETTINGS_MODULE", "DATABASE_URL", "REDIS_URL"}
        kept = {name: value for name, value in os.environ.items() if name not in others}
        return {
            **kept,
            "HOLDLINE_DATA_DIR": str(self.data_dir),
            **self._server_environment,
            **extra,
        }

    def start_server(self, **environment: str) -> None:
        """Start the server, and return when its port accepts connections.

        ``environment`` is added to the stack's own.
        """
        self.server = self._launch(self.port, "server.log", environment)
        self._wait_started(
            self.server, lambda: accepts(self.port), "the server to accept connections"
        )

    def _launch(
        self, port: int, log_name: str, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        command, variables = (
            server_command(self.SERVER_KIND, port, self.APPLICATION),
            self.server_environment(**environment),
        )
        with (self.root / log_name).open("ab") as log:
            streams = (subprocess.DEVNULL, log, log)
            return start(command, PROJECT_ROOT, variables, streams=streams, is_warm=self.IS_WARM)

    def server_processes(self) -> list[subprocess.Popen[bytes]]:
        """The processes that serve requests."""
        return [] if self.server is None else [self.server]

    def process_ids(self) -> set[int]:
        """The processes that are to run while the stack does."""
        return {
            process.pid
            for process in (self.daemon, *self.server_processes())
            if process is not None
        }

    def server_log(self) -> str:
        """Everything that the servers have logged so far."""
        return "".join(
            path.read_text(errors="replace") for path in sorted(self.root.glob("server*.log"))
        )

    def kill_server(self) -> None:
        """Kill every server process with SIGKILL, and reap it."""
        for process in self.server_processes():
            process.kill()
        for process in self.server_processes():
            process.wait(_GONE_SECONDS)

    def pause_server(self) -> None:
        """Stop every server process with SIGSTOP. Its connections stay open."""
        for process in self.server_processes():
            process.send_signal(signal.SIGSTOP)

    def resume_server(self) -> None:
        """Continue every server process with SIGCONT."""
        for process in self.server_processes():
            process.send_signal(signal.SIGCONT)

    # ---- daemon ----------------------------------------------------------------------------------

    def daemon_command(
        self, *, state_dir: Path | None = None, credential_file: Path | None = None
    ) -> tuple[list[str], dict[str, str]]:
        """Command line and environment of the daemon."""
        arguments = [
            "-m",
            "controller_client",
            "run",
            "--server",
            f"ws://127.0.0.1:{self.daemon_port}/ws/controller/",
        ]
        arguments += [
            "--credential-file",
            str(credential_file or self.credential_file),
            "--state-dir",
            str(state_dir or self.state_dir),
        ]
        arguments += [
            "--log-level",
            "debug",
            "--session-logs",
            str(self.session_logs),
            "--log-root",
            str(self.log_root),
        ]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        if self.account is None:
            as_root = ["--allow-root"] if os.geteuid() == 0 else []
            environment |= {"HOME": os.environ.get("HOME", "/"), "PYTHONPATH": str(PROJECT_ROOT)}
            return [*self._daemon_prefix, sys.executable, *arguments, *as_root], environment
        environment |= {
            "HOME": str(self.account.home),
            "USER": self.account.name,
            "PYTHONPATH": str(host_libraries()),
        }
        become = self.account.as_daemon if self.run_as else self.account.as_user
        return [*become, interpreter_for(self.account), *arguments], environment

    def start_daemon(self) -> None:
        """Start the daemon, and return when the server has accepted its HELLO."""
        epoch = self.database.controller_epoch(self.provisioned.controller)
        command, environment = self.daemon_command()
        with (self.root / "daemon.log").open("ab") as log:
            self.daemon = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        online = "the daemon's HELLO to be accepted"
        self._wait_started(
            self.daemon,
            lambda: self.database.controller_epoch(self.provisioned.controller) > epoch,
            online,
        )

    def kill_daemon(self) -> None:
        """Kill the daemon with SIGKILL, and reap it.

        Its fork server then ends by itself; its holders go on.
        """
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait(_GONE_SECONDS)

    def daemon_pids(self) -> list[int]:
        """The daemon and its direct children, such as the fork server."""
        return [] if self.daemon is None else [self.daemon.pid, *children_of(self.daemon.pid)]

    def _wait_started(
        self, process: subprocess.Popen[bytes], is_up: Callable[[], bool], what: str
    ) -> None:
        def up_or_dead() -> bool:
            return process.poll() is not None or is_up()

        try:
            wait_until(up_or_dead, _START_SECONDS, what)
            assert process.poll() is None, f"ended with {process.returncode} instead of {what}"
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None

    # ---- holders ---------------------------------------------------------------------------------

    def holder_pid(self, session_id: str) -> int | None:
        """The process that holds the lock of a session's directory."""
        lock = str(self.state_dir / "sessions" / session_id / "holder.lock")
        for pid in all_pids():
            if lock in open_descriptors(pid).values():
                return pid
        return None

    def program_pids(self, session_id: str) -> list[int]:
        """The live processes of a session, found by the mark in their environment."""
        return pids_with_environment(f"HOLDLINE_SESSION={session_id}".encode())

    def session_ids_on_host(self) -> list[str]:
        """The sessions of which the host still keeps a directory."""
        sessions = self.state_dir / "sessions"
        return [entry.name for entry in sessions.iterdir()] if sessions.is_dir() else []

    # ---- callers and life ------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address of the MCP endpoint."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def caller(
        self, token: str | None = None, *, mode: str = "auto"
    ) -> AbstractAsyncContextManager[Caller]:
        """An MCP client session, with the first project's token unless another is given."""
        return connect(self.url, token or self.provisioned.token, mode=mode)

    def start(self) -> Self:
        """Start the server, then the daemon."""
        self.start_server()
        self.start_daemon()
        return self

    def logs(self, lines: int = 60) -> str:
        """The last lines of both logs."""
        parts = []
        for log in sorted(self.root.glob("*.log")):
            parts += [f"---- {log.name}", *log.read_text(errors="replace").splitlines()[-lines:]]
        return "\n".join(parts)

    def stop(self) -> None:
        """End everything that the stack started, sessions included, and remove its files."""
        left = {
            session: [self.holder_pid(session), *self.program_pids(session)]
            for session in self.session_ids_on_host()
        }
        processes = [
            process for process in (self.daemon, *self.server_processes()) if process is not None
        ]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in processes:
            _reap(process)
        pids = [pid for found in left.values() for pid in found if pid]
        for pid in pids:
            send_signal(pid, signal.SIGKILL)
        wait_until(
            lambda: not any(is_running(pid) for pid in pids),
            _GONE_SECONDS,
            "the sessions' processes to be gone",
        )
        self.database.close()
        LIVE.remove(self)
        shutil.rmtree(self.root, ignore_errors=True)


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_GONE_SECONDS)


_DEPLOYED: list[type[Stack]] = [Stack]


def deployed() -> type[Stack]:
    """The kind of stack that tests get: one server, or a cluster if this run is one of those."""
    return _DEPLOYED[-1]


def deploy(kind: type[Stack]) -> None:
    """Give tests this kind of stack from now on."""
    _DEPLOYED.append(kind)


@contextmanager
def running_stack(**options: Any) -> Iterator[Stack]:
    """A started stack that is always stopped after the block.

    Its logs are printed if the block fails.
    """
    stack = deployed()(**options)
    try:
        yield stack.start()
    except BaseException:
        sys.stderr.write(stack.logs() + "\n")
        raise
    finally:
        stack.stop()
