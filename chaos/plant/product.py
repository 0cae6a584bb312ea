"""The product as a stranger runs it: by its commands, its files and its addresses."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from chaos.plant import disks, processes
from chaos.plant.backends import Backends
from chaos.plant.clocks import Clock, make_library
from chaos.plant.link import Link
from chaos.plant.ports import Ports
from chaos.plant.processes import Command, Process
from chaos.wire import Endpoint

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECT: Final = "chaos"
_READY_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 0.05
_SESSIONS: Final = 400
_LIFETIME_SECONDS: Final = 7200
APPROVAL_SECONDS: Final = 25
"""A question that nobody answers is over after this time."""
_DATA_SIZE: Final = "1g"
_STATE_SIZE: Final = "768m"
_HOLDER: Final = "holdline-holder"


class NotReadyError(Exception):
    """Something did not come up."""


def _answers(storage: Backends, process: Process) -> bool:
    """True if PostgreSQL or Redis answers; one that ended is started again.

    PostgreSQL refuses to start while children of a killed one are left.
    """
    process.start()
    return storage.accepts(process.name)


async def until(is_so: Callable[[], bool], seconds: float, what: str) -> float:
    """Wait until ``is_so``, and return how long that took. Raises NotReadyError."""
    began = time.monotonic()
    while not await asyncio.to_thread(is_so):
        if time.monotonic() - began > seconds:
            raise NotReadyError(f"not in {seconds:.0f} s: {what}")
        await asyncio.sleep(_LOOK_SECONDS)
    return time.monotonic() - began


class Product:
    """Servers and a daemon below ``directory``, reached through links of our own.

    With ``is_scaled_out`` there are two servers on PostgreSQL and Redis, else one on SQLite.
    ``trees`` says which checkout each of ``server`` and ``daemon`` runs from.
    """

    def __init__(self, directory: Path, *, is_scaled_out: bool = False, tree: Path = ROOT) -> None:
        self.directory = directory
        self.data, self.state = directory / "data", directory / "state"
        self.logs, self.programs = directory / "logs", directory / "programs"
        self.ports = Ports()
        self.server_ports = [self.ports.next() for _ in range(2 if is_scaled_out else 1)]
        self.storage = Backends(directory, self.ports) if is_scaled_out else None
        self.links = {
            "front": Link(self.ports.next(), self.server_ports),
            "link": Link(self.ports.next(), self.server_ports),
            **(self.storage.links if self.storage else {}),
        }
        self.backends = self.storage.processes if self.storage else {}
        self.tree, self.older = tree, directory / "older"
        self.trees = {"server": tree, "daemon": tree}
        self.variables: dict[str, dict[str, str]] = {"server": {}, "daemon": {}}
        self.clocks: dict[str, Clock] = {}
        self.servers = [self._server(number) for number in range(len(self.server_ports))]
        self.daemon = Process("daemon", directory / "daemon.log", self._daemon_command)
        self.token = self.held_token = ""
        self.operator = ("", "")
        """The name and the password of a person with every right."""

    def make_directories(self) -> None:
        """Make the directories of server, daemon, logs and programs."""
        for each in (self.data, self.state, self.logs, self.programs):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    def mount_disks(self) -> None:
        """Give server and daemon small disks of their own."""
        disks.mount(self.data, _DATA_SIZE)
        disks.mount(self.state, _STATE_SIZE)

    async def set_clocks(self) -> None:
        """Give server and daemon clocks of their own, which are right at first."""
        library = await make_library(self.directory)
        for who in ("server", "daemon"):
            self.clocks[who] = Clock(self.directory / f"{who}.clock")
            self.variables[who] = self.clocks[who].variables(library)

    async def check_out(self, commit: str) -> None:
        """Put an older commit beside this one, to run from it."""
        self.older.mkdir()
        archive = self.directory / "older.tar"
        commands = [
            ["git", "archive", "--output", str(archive), commit],
            ["tar", "-xf", str(archive), "-C", str(self.older)],
        ]
        for arguments in commands:
            await processes.run(Command(arguments, dict(os.environ), ROOT))

    # ---- commands --------------------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        """The environment of everything on the server's side."""
        dropped = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}
        stored = self.storage.variables if self.storage else {}
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return {**kept, "HOLDLINE_DATA_DIR": str(self.data), **stored}

    def _server(self, number: int) -> Process:
        port, log = self.server_ports[number], self.directory / f"server{number}.log"
        return Process(f"server{number}", log, lambda: self._server_command(port))

    def _server_command(self, port: int) -> Command:
        arguments = [sys.executable, "-m", "config.server", "--bind", "127.0.0.1"]
        return Command(
            [*arguments, "--port", str(port)],
            {
                **self.environment(),
                **self.variables["server"],
                "HOLDLINE_APPROVAL_SECONDS": str(APPROVAL_SECONDS),
            },
            self.trees["server"],
        )

    def _daemon_command(self) -> Command:
        return self.daemon_command(self.state)

    def daemon_command(self, state: Path) -> Command:
        """The command of a daemon on this state directory, with the credential of the run."""
        options = {
            "--server": f"ws://127.0.0.1:{self.links['link'].port}/ws/controller/",
            "--credential-file": str(self.directory / "credential"),
            "--state-dir": str(state),
            "--session-logs": str(self.directory / "session-logs"),
            "--log-root": str(self.logs),
        }
        arguments = [word for pair in options.items() for word in pair]
        if os.geteuid() == 0:
            arguments.append("--allow-root")
        variables = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        variables |= {"HOME": os.environ.get("HOME", "/"), "PYTHONPATH": str(self.trees["daemon"])}
        return Command(
            [sys.executable, "-m", "controller_client", "run", *arguments],
            {**variables, **self.variables["daemon"]},
            self.directory,
        )

    async def manage(self, *arguments: str) -> str:
        """Run a command of ``manage.py``, and return what it printed."""
        command = [sys.executable, "manage.py", *arguments]
        return await processes.run(Command(command, self.environment(), self.trees["server"]))

    # ---- life ------------------------------------------------------------------------------------

    async def provision(self) -> None:
        """Make the database, a project with two tokens, a person, and a controller."""
        await self.manage("migrate", "--verbosity", "0")
        limits = ["--url", f"http://127.0.0.1:{self.links['front'].port}"]
        limits += ["--max-interactive-sessions", str(_SESSIONS)]
        limits += ["--lifetime-seconds", str(_LIFETIME_SECONDS)]
        made = json.loads(await self.manage("bootstrap", "--project", PROJECT, *limits))
        self.token = Path(made["token_file"]).read_text().strip()
        self.operator = (made["admin_name"], made["admin_password"])
        asking = ["create_api_token", made["project"], "--approvals", "ask-all"]
        self.held_token = (await self.manage(*asking)).strip()
        credential = self.directory / "credential"
        credential.touch(mode=0o600)
        credential.write_text(Path(made["credential_file"]).read_text())

    async def start(self) -> dict[str, float]:
        """Start servers and daemon; return how long each took until it was ready."""
        for server in self.servers:
            server.start()
        return {each.name: await self.ready(each) for each in (*self.servers, self.daemon)}

    async def start_backends(self) -> None:
        """Open the links; start PostgreSQL and Redis, if there are any, with an empty database."""
        for link in self.links.values():
            await link.open()
        if self.storage is not None:
            await asyncio.to_thread(self.storage.make)
            for process in self.backends.values():
                await self.ready(process)
            await self.storage.make_database()

    async def ready(self, process: Process) -> float:
        """Start a process unless it runs; return the seconds until it is ready."""
        if process is self.daemon:
            return await self._start_daemon()
        process.start()
        storage = self.storage
        if process in self.servers or storage is None:
            return await until(
                lambda: self._is_ready(process), _READY_SECONDS, f"{process.name} ready"
            )
        return await until(
            lambda: _answers(storage, process), _READY_SECONDS, f"{process.name} ready"
        )

    def _is_ready(self, server: Process) -> bool:
        if server.pid is None:
            raise NotReadyError(f"{server.name} exited with {server.exit_code}: see {server.log}")
        port = self.server_ports[self.servers.index(server)]
        connection = HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    async def _start_daemon(self) -> float:
        """Start the daemon; return the seconds until its log says that it is connected."""
        self.daemon.start()
        return await until(
            lambda: self.daemon.pid is None or '"connected' in self.daemon.said(),
            _READY_SECONDS,
            "the daemon connected",
        )

    async def stop(self) -> dict[str, float]:
        """Stop everything by SIGTERM; return how long each took."""
        took = {"daemon": await self.daemon.end(signal.SIGTERM)}
        for server in self.servers:
            took[server.name] = await server.end(signal.SIGTERM)
        for name, process in self.backends.items():
            took[name] = await process.end(signal.SIGINT)
        for link in self.links.values():
            await link.close()
        self.ports.close()
        return took

    def unmount_disks(self) -> None:
        """Take the small disks away again, if there are any."""
        for directory in (self.data, self.state):
            disks.unmount_all(directory)

    def database_bytes(self) -> int:
        """The size of the database on the disk, with its indexes; of PostgreSQL without its log."""
        backends = self.directory / "backends" / "postgresql" / "base"
        files = backends.rglob("*") if self.storage else self.data.glob("db.sqlite3*")
        total = 0
        for path in files:
            with suppress(FileNotFoundError):
                total += path.stat().st_size
        return total

    @property
    def endpoint(self) -> Endpoint:
        """The place where callers reach the servers: the front link."""
        return Endpoint(self.links["front"].port, self.token)

    # ---- what runs -------------------------------------------------------------------------------

    def holders(self, state: Path | None = None) -> list[int]:
        """The holders of this run's daemon, or of the daemon with another state directory."""
        state = state or self.state
        return [pid for pid in processes.pids_named(_HOLDER) if processes.files_of(pid, state)]

    def sessions_of(self, holder: int, state: Path | None = None) -> list[str]:
        """The id of the session that a holder holds, in a list; none of one that only stands by."""
        sessions = (state or self.state) / "sessions"
        opened = [path.relative_to(sessions) for path in processes.files_of(holder, sessions)]
        return sorted({path.parts[0] for path in opened if path.parts})

    def programs_running(self) -> list[int]:
        """Every program of this run that lives."""
        return processes.pids_with(str(self.programs))

    def fork_servers(self) -> list[int]:
        """The children of the daemon that are no holders."""
        daemon, holders = self.daemon.pid, set(processes.pids_named(_HOLDER))
        found = [] if daemon is None else processes.children_of(daemon)
        return [pid for pid in found if pid not in holders]
