"""A Redis server that belongs to a test and can be killed, stopped and started again."""

import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.support.ports import free_port
from tests.support.waiting import wait_until

_START_SECONDS = 120.0
_STOP_SECONDS = 90.0


class Redis:
    """One Redis process that writes nothing to disk."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="holdline-redis-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The value of REDIS_URL for this server."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> "Redis":
        """Start Redis unless it runs, and return when it answers."""
        if self.process is not None and self.process.poll() is None:
            return self
        command = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self.root),
        ]
        with (self.root / "redis.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )
        wait_until(lambda: self.ask("PING") == "+PONG", _START_SECONDS, "Redis to answer")
        return self

    def ask(self, command: str) -> str | None:
        """The first line of the answer to an inline command; None if Redis does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
                connection.sendall(command.encode() + b"\r\n")
                return connection.recv(4096).decode().splitlines()[0]
        except (OSError, IndexError):
            return None

    def kill(self) -> None:
        """Kill Redis with SIGKILL, and reap it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(_STOP_SECONDS)

    def restart(self) -> None:
        """Kill Redis with SIGKILL, and start it again."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Stop the process with SIGSTOP. Its connections stay open."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the process with SIGCONT."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        """Kill Redis and delete its files."""
        self.kill()
        shutil.rmtree(self.root, ignore_errors=True)
