"""The server and the local controller: set up, started, kept running, and ended in order."""

import asyncio
import json
import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, TextIO

from quickstart import preflight, previous
from quickstart.console import Console
from quickstart.environment import PYTHON
from quickstart.errors import QuickstartError
from quickstart.options import Options
from quickstart.server import children
from quickstart.server.children import Child

_LOOK_AGAIN_SECONDS = 0.05
_SERVER_START_SECONDS = 30.0
_FAREWELL_SECONDS = 15.0
_PORT_SECONDS = 5.0
# For a trial, one interactive session of 5 minutes is too little. Other projects keep the product's
# limits.
_INTERACTIVE_SESSIONS, _LIFETIME_SECONDS = 8, 24 * 3600
_RESTARTS, _RESTARTS_WITHIN_SECONDS = 5, 60.0
_SERVER = ("-m", "config.server")
_CONTROLLER = "the local controller"


class Stack:
    """The processes and files of one data directory."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.data_dir = options.data_dir
        self.state_dir = options.data_dir / "controller"
        self.log_root = options.data_dir / "monitored-logs"
        self._logs = options.data_dir / "logs"
        self.controller_log = self._logs / "controller.log"
        own = {
            "HOLDLINE_DATA_DIR": str(self.data_dir),
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
            "PYTHONUNBUFFERED": "1",
        }
        self._environment = {**os.environ, **own}
        self._lock: TextIO | None = None
        self._children: list[Child] = []
        self._commands: dict[str, list[str]] = {}
        self._bundle: Child | None = None

    def claim(self, console: Console) -> None:
        """Lock the data directory and choose a port; ends processes of a killed quickstart.

        Raises QuickstartError if another quickstart uses the directory, or if no port is free.
        """
        self._lock = preflight.claim(self.data_dir)
        self._logs.mkdir(mode=0o700, exist_ok=True)
        if previous.running(self.data_dir):
            console.step("Ending the server and the controller of a quickstart that was killed")
            if not previous.end(self.data_dir):
                raise QuickstartError("processes of a quickstart that was killed cannot be ended")
            # The kernel frees the port a moment after the process has ended.
            previous.wait_until(lambda: preflight.is_port_free(self.options.port), _PORT_SECONDS)
        port = preflight.usable_port(self.options)
        if port != self.options.port:
            console.line(
                f"    port {self.options.port} is taken, so the server uses {port} (PORT=... "
                "chooses one)"
            )
        self.options = replace(self.options, port=port)
        # The links that callers are given lead to the console, which a path alone would not.
        self._environment.setdefault("HOLDLINE_PUBLIC_URL", self.options.base_url)

    async def set_up(self) -> dict[str, Any]:
        """Migrate and bootstrap; returns the JSON answer of ``manage.py bootstrap``."""
        # The database holds transcripts, and SQLite gives its journal the mode of the database.
        os.close(os.open(self.data_dir / "db.sqlite3", os.O_RDWR | os.O_CREAT, 0o600))
        await children.run(
            "migrating the database",
            self._manage("migrate", "--no-input"),
            self._environment,
            self._logs / "migrate.log",
        )
        roomy = (
            "--max-interactive-sessions",
            str(_INTERACTIVE_SESSIONS),
            "--lifetime-seconds",
            str(_LIFETIME_SECONDS),
        )
        command = self._manage("bootstrap", "--url", self.options.base_url, *roomy)
        log = self._logs / "bootstrap.log"
        answer = await children.run(
            "making the project and its credentials", command, self._environment, log
        )
        found: dict[str, Any] = json.loads(answer)
        return found

    async def start_server(self) -> None:
        """Start the server on 127.0.0.1 and wait for an answer. Raises StepFailed if it ends."""
        command = [str(PYTHON), *_SERVER, "--port", str(self.options.port), "--bind", "127.0.0.1"]
        server = await self._start("the server", command, "server.log")
        async with asyncio.timeout(_SERVER_START_SECONDS):
            while not await self._answers():
                if server.process.returncode is not None:
                    raise server.failure()
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def start_controller(self, credential_file: str) -> None:
        """Start the local daemon, which connects on its own."""
        url = f"ws://127.0.0.1:{self.options.port}/ws/controller/"
        command = [str(PYTHON), "-m", "controller_client", "run", "--server", url]
        # What a controller.toml of this host says is meant for another daemon.
        command += ["--config", "off"]
        command += ["--credential-file", credential_file, "--state-dir", str(self.state_dir)]
        self.log_root.mkdir(mode=0o700, exist_ok=True)
        for root in (self.log_root, *self.options.log_roots):
            command += ["--log-root", str(root)]
        # The daemon refuses to run as root unless it is told to.
        if os.geteuid() == 0:
            command.append("--allow-root")
        await self._start(_CONTROLLER, command, self.controller_log.name)

    def connection_state(self) -> str:
        """The word of the running local daemon for its connection; empty if it has none."""
        with suppress(OSError, ValueError):
            told = json.loads((self.state_dir / "status.json").read_text())
            # One that was killed leaves its last word behind.
            if any(
                child.name == _CONTROLLER and child.process.pid == told["pid"]
                for child in self._children
            ):
                return str(told["state"])
        return ""

    async def is_revoked(self, project: str, controller: str) -> bool:
        """Ask the server's database whether there is no such host any more."""
        found = await children.run(
            "listing the hosts",
            self._manage("hosts", project, "--json"),
            self._environment,
            self._logs / "hosts.log",
        )
        return all(host["host"] != f"{project}/{controller}" for host in json.loads(found))

    async def make_bundle(self) -> None:
        """Make the bundle that hosts install the daemon from, in the background.

        Without a network it fails, and the server goes on without: its installer says so.
        """
        command = ["nice", str(PYTHON), "bin/build_controller.py", "--if-changed"]
        command += ["--platform", "own", "--output", str(self.data_dir / "bundles")]
        self._bundle = await children.start(
            "the bundle", command, self._environment, self._logs / "bundle.log"
        )

    async def keep_up(self, console: Console) -> NoReturn:
        """Restart each process that ends on its own; sessions survive both of them.

        Raises StepFailed for a process that ends six times in a minute.
        """
        ended: dict[str, deque[float]] = {
            child.name: deque(maxlen=_RESTARTS) for child in self._children
        }
        while True:
            child = await self._first_to_end()
            times = ended[child.name]
            now = asyncio.get_running_loop().time()
            if len(times) == _RESTARTS and now - times[0] < _RESTARTS_WITHIN_SECONDS:
                raise child.failure()
            times.append(now)
            console.line(f"{child.name} {child.end}; starting it again (log: {child.log})")
            again = await children.start(
                child.name, self._commands[child.name], self._environment, child.log
            )
            self._children[self._children.index(child)] = again
            self._record()

    async def _first_to_end(self) -> Child:
        waits = {asyncio.ensure_future(child.process.wait()): child for child in self._children}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return waits[done.pop()]

    async def end_sessions(self, project: str, controller: str) -> None:
        """End the sessions on ``controller`` through the server, so that its rows say who did.

        Gives up after 15 s; ``leftovers`` ends what is left.
        """
        command = self._manage("end_sessions", project, "--controller", controller)
        with suppress(QuickstartError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await children.run(
                    "ending the sessions",
                    command,
                    self._environment,
                    self._logs / "end_sessions.log",
                )

    async def stop(self) -> None:
        """End the controller, then the server; sessions continue."""
        for child in (*filter(None, (self._bundle,)), *reversed(self._children)):
            await child.stop(10.0)
        self._children.clear()
        self._record()

    async def _start(self, name: str, command: Iterable[str], log: str) -> Child:
        self._commands[name] = list(command)
        child = await children.start(
            name, self._commands[name], self._environment, self._logs / log
        )
        self._children.append(child)
        self._record()
        return child

    def _record(self) -> None:
        # The next start finds these processes if this one is killed.
        previous.record(
            self.data_dir,
            {child.process.pid: self._commands[child.name] for child in self._children},
        )

    async def _answers(self) -> bool:
        with suppress(OSError):
            _reader, writer = await asyncio.open_connection("127.0.0.1", self.options.port)
            writer.close()
            await writer.wait_closed()
            return True
        return False

    @staticmethod
    def _manage(*arguments: str) -> list[str]:
        return [str(PYTHON), "manage.py", *arguments]
