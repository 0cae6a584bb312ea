"""The fork server that is started while the daemon has the rights to become another user.

These rights are worth as much as root. So the daemon starts this fork server before everything
else, and then gives its own rights up, before it has a second thread and before it hears a byte
from the network. The fork server takes one fixed user from its command line.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import controller_client
from controller_client.server_link.holders.spares import ForkServerLink

_FORK_SERVER: Final = "controller_client.holder.fork_server"
_PASSED_ON: Final = ("HOME", "USER", "LOGNAME", "PATH", "LANG", "TZ")


class PrivilegedForkServer:
    """A running fork server, with the methods of asyncio's processes that its spawner needs."""

    def __init__(self, state_dir: Path, groups: Path | None, run_as: str) -> None:
        """Start a fork server whose programs run as ``run_as``. Raises OSError."""
        self._socket, theirs = socket.socketpair()
        with theirs:
            # Not through asyncio, whose watcher may be a thread: it would keep the rights.
            self._process = subprocess.Popen(
                fork_server_command(state_dir, groups, run_as),
                stdin=theirs.fileno(),
                env=fork_server_environment(),
            )
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or the negative signal that ended it; None while it runs."""
        return self._process.poll()

    def link(self) -> ForkServerLink:
        """Return the conversation with it, which can be had once.

        Raises OSError once it has ended: there cannot be a second one.
        """
        if self._socket.fileno() < 0 or self.returncode is not None:
            raise ConnectionResetError("the fork server has ended, and this daemon may start none")
        connection, self._socket = self._socket, socket.socket()
        self._socket.close()
        return ForkServerLink(connection)

    def send_signal(self, number: signal.Signals) -> None:
        """Send the fork server a signal, if it runs."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the fork server, if it runs."""
        self._process.kill()

    async def wait(self) -> int:
        """Wait for its end, and return how it ended."""
        return await asyncio.to_thread(self._process.wait)


def fork_server_command(state_dir: Path, groups: Path | None, run_as: str | None) -> list[str]:
    """Return the command line of a fork server."""
    more = [str(groups or ""), run_as] if run_as else [str(groups)] if groups is not None else []
    # -P: without it, modules are taken from whatever directory the daemon was started in.
    return [sys.executable, "-P", "-m", _FORK_SERVER, str(state_dir), *more]


def fork_server_environment() -> dict[str, str]:
    """Return the few variables that the fork server needs.

    A holder inherits them, and every program of its user can read a holder's environment.
    """
    root = str(Path(controller_client.__file__).resolve().parent.parent)
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {**kept, "PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNODEBUGRANGES": "1"}
