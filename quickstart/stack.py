"""The server and the local controller: set up, started in order, ended in order with every program they run."""

import asyncio
import fcntl
import json
import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NoReturn, TextIO

from quickstart import children
from quickstart.children import Child
from quickstart.console import Console
from quickstart.environment import PYTHON
from quickstart.errors import QuickstartError
from quickstart.options import Options
from quickstart.preflight import owner_is_root

_LOOK_AGAIN_SECONDS = 0.05
_SERVER_START_SECONDS = 30.0
_RESTARTS, _RESTARTS_WITHIN_SECONDS = 5, 60.0
_FRAME_BYTES = str(256 * 1024)
_DAPHNE = (
    *("-m", "daphne", "-b", "127.0.0.1", "--websocket_timeout", "-1", "--ping-interval", "10", "--ping-timeout", "10"),
    *("--application-close-timeout", "30", "--websocket-max-message-size", _FRAME_BYTES, "--websocket-max-frame-size", _FRAME_BYTES),
    *("-v", "0", "--no-server-name"),
)


class Stack:
    """Everything that runs on behalf of one data directory."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.data_dir = options.data_dir
        self.state_dir = options.data_dir / "controller"
        self._logs = options.data_dir / "logs"
        own = {"HOLDLINE_DATA_DIR": str(self.data_dir), "DJANGO_SETTINGS_MODULE": "config.settings.base", "PYTHONUNBUFFERED": "1"}
        self._environment = {**os.environ, **own}
        self._lock: TextIO | None = None
        self._children: list[Child] = []
        self._commands: dict[str, list[str]] = {}

    def claim(self) -> None:
        """Take the data directory for this process. Raises QuickstartError if another quickstart has it."""
        self._logs.mkdir(mode=0o700, exist_ok=True)
        file = (self.data_dir / "quickstart.lock").open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise QuickstartError(f"another quickstart is running on {self.data_dir}") from None
        self._lock = file

    async def set_up(self) -> dict[str, Any]:
        """Migrate and bootstrap; what ``manage.py bootstrap`` answered."""
        # SQLite gives its journal the mode of the database file, which holds transcripts.
        os.close(os.open(self.data_dir / "db.sqlite3", os.O_RDWR | os.O_CREAT, 0o600))
        await children.run("migrating the database", self._manage("migrate", "--no-input"), self._environment, self._logs / "migrate.log")
        command = self._manage("bootstrap", "--url", self.options.base_url)
        log = self._logs / "bootstrap.log"
        answer = await children.run("making the project and its credentials", command, self._environment, log)
        found: dict[str, Any] = json.loads(answer)
        return found

    async def start_server(self) -> None:
        """Daphne on 127.0.0.1, until it answers. Raises StepFailed if it ends instead."""
        command = [str(PYTHON), *_DAPHNE, "-p", str(self.options.port), "config.asgi:application"]
        server = await self._start("the server", command, "server.log")
        async with asyncio.timeout(_SERVER_START_SECONDS):
            while not await self._answers():
                if server.has_ended:
                    raise server.failure()
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def start_controller(self, credential_file: str) -> None:
        """The local daemon; it connects on its own."""
        url = f"ws://127.0.0.1:{self.options.port}/ws/controller/"
        command = [str(PYTHON), "-m", "controller_client", "run", "--server", url, "--credential-file", credential_file]
        command += ["--state-dir", str(self.state_dir)]
        if owner_is_root():
            command.append("--allow-root")
        await self._start("the local controller", command, "controller.log")

    async def keep_up(self, console: Console) -> NoReturn:
        """Start again what ends on its own: sessions live through both. Raises StepFailed for what does so again and again."""
        ended: dict[str, deque[float]] = {child.name: deque(maxlen=_RESTARTS) for child in self._children}
        while True:
            child = await self._first_to_end()
            times = ended[child.name]
            now = asyncio.get_running_loop().time()
            if len(times) == _RESTARTS and now - times[0] < _RESTARTS_WITHIN_SECONDS:
                raise child.failure()
            times.append(now)
            console.line(f"{child.name} ended; starting it again (log: {child.log})")
            self._children[self._children.index(child)] = await children.start(
                child.name, self._commands[child.name], self._environment, child.log
            )

    async def _first_to_end(self) -> Child:
        waits = {asyncio.ensure_future(child.wait()): child for child in self._children}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return waits[done.pop()]

    async def stop(self) -> None:
        """End the controller, then the server."""
        for child in reversed(self._children):
            await child.stop(10.0)
        self._children.clear()

    @property
    def has_server(self) -> bool:
        """Whether the server is up."""
        return bool(self._children) and not self._children[0].has_ended

    async def _start(self, name: str, command: Iterable[str], log: str) -> Child:
        self._commands[name] = list(command)
        child = await children.start(name, self._commands[name], self._environment, self._logs / log)
        self._children.append(child)
        return child

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
