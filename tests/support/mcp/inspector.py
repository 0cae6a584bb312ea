"""The protocol's Inspector on the command line: over HTTP, and before a server on stdio.

All commands run in one process: a process for each would take minutes. The Inspector's ``mcpdo``
keeps connections in a daemon that it starts; that daemon is ended too.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.mcp.node_packages import NodePackages
from tests.support.processes import is_running, send_signal
from tests.support.waiting import wait_until

_CLIENTS: Final = "@modelcontextprotocol/inspector/clients"
_SCRIPT: Final = Path(__file__).resolve().parents[2] / "data" / "node_scripts" / "inspector.mjs"
_CONNECT_MS: Final = "120000"
_STOP_SECONDS: Final = 90.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of one command. ``code`` is 0 for success and 5 for an error of a tool."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """The result that the command printed as JSON."""
        printed: dict[str, Any] = json.loads(self.stdout)
        return printed.get("result", printed)


class Inspector:
    """One process that runs commands one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, *arguments: str) -> Outcome:
        """Run one command line, and return its outcome."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(arguments) + "\n")
        self._process.stdin.flush()
        return Outcome(**json.loads(self._process.stdout.readline()))


@contextmanager
def command_line(packages: NodePackages) -> Iterator[Inspector]:
    """An Inspector that runs ``mcp-inspector --cli``."""
    with _home() as home, _running(packages, "cli/build/index.js", "runCli", home) as inspector:
        yield inspector


@contextmanager
def connection(
    packages: NodePackages, command: Sequence[str], environment: Mapping[str, str], cwd: Path
) -> Iterator[Inspector]:
    """An Inspector that runs ``mcpdo``, connected to the server that ``command`` starts.

    Its commands need not name the server.
    """
    with _home() as home, _running(packages, "mcpdo/build/mcp-bin.js", "runMcp", home) as inspector:
        variables = [
            part for name, value in environment.items() for part in ("-e", f"{name}={value}")
        ]
        try:
            connected = inspector.run(
                *(
                    "connect",
                    "--connect-timeout",
                    _CONNECT_MS,
                    *variables,
                    "--cwd",
                    str(cwd),
                    "@server",
                    "--",
                    *command,
                )
            )
            assert connected.code == 0, connected.stderr
            yield inspector
        finally:
            daemon = json.loads(inspector.run("--format", "json", "daemon", "status").stdout)
            inspector.run("daemon", "stop")
            _await_end(daemon.get("pid"))


def _await_end(pid: int | None) -> None:
    if pid is None:
        return
    try:
        wait_until(lambda: not is_running(pid), _STOP_SECONDS, "the Inspector's daemon to end")
    finally:
        if is_running(pid):
            send_signal(pid, signal.SIGKILL)


@contextmanager
def _home() -> Iterator[Path]:
    """A home directory for the Inspector, which keeps what it is told there, tokens included.

    The path is short because the Inspector puts a socket there.
    """
    home = Path(tempfile.mkdtemp(prefix="inspector-"))
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def _running(packages: NodePackages, module: str, function: str, home: Path) -> Iterator[Inspector]:
    environment = {
        **os.environ,
        "HOME": str(home),
        "MCP_INSPECTOR_DAEMON_DIR": str(home / "d"),
        "NO_COLOR": "1",
    }
    command = [
        str(packages.node),
        str(_SCRIPT),
        str(packages.path(f"{_CLIENTS}/{module}")),
        function,
    ]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield Inspector(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
