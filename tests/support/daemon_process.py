"""A real daemon process for tests, with the means to kill it and to clean up the holders it leaves behind."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from controller_client.session_directory import SessionDirectory, all_sessions
from controller_client.termination import kill_leftovers
from tests.support.scripted_server import CREDENTIAL
from tests.support.waiting import await_until

ROOT = Path(__file__).resolve().parents[2]


class DaemonProcess:
    """``holdline-controller run`` as a child of the test; start it as often as you kill it."""

    def __init__(self, directory: Path, server_url: str, *options: str) -> None:
        self.state_dir = directory / "state"
        self.log_path = directory / "daemon.log"
        self.credential_file = directory / "credential"
        self.credential_file.write_text(CREDENTIAL)
        self.credential_file.chmod(0o600)
        self._server_url = server_url
        self._options = options
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> str:
        """Everything every daemon of this directory has logged."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        """Of the daemon that was started last."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Run another daemon on the same state directory."""
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "controller_client", "run", "--server", self._server_url),
                *("--credential-file", str(self.credential_file), "--state-dir", str(self.state_dir), "--allow-root"),
                *self._options,
                stderr=log,
                cwd=ROOT,
            )

    async def kill(self) -> int:
        """SIGKILL, as the machine's worst day would."""
        return await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """SIGTERM; the exit code."""
        return await self._end(signal.SIGTERM)

    async def wait(self) -> int:
        """The exit code of a daemon that ends by itself."""
        assert self._process is not None
        return await self._process.wait()

    async def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        return await self._process.wait()

    def sessions(self) -> list[SessionDirectory]:
        """What the host remembers."""
        return all_sessions(self.state_dir)

    async def clean_up(self) -> None:
        """Kill the daemon, then every holder and program."""
        if self._process is not None and self._process.returncode is None:
            await self.kill()
        for session in self.sessions():
            for holder in holder_pids(session):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(holder, signal.SIGKILL)
            await asyncio.to_thread(kill_leftovers, session.session_id)
            await await_until(lambda session=session: not session.is_holder_alive(), 30, "the holder to be dead")


def holder_pids(session: SessionDirectory) -> list[int]:
    """The holder of a session: the process that lives in its directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == session.path:
                found.append(int(entry.name))
    return found


@contextlib.asynccontextmanager
async def daemon_process(directory: Path, server_url: str, *options: str) -> AsyncIterator[DaemonProcess]:
    """A started daemon with more ``options``; at the end nothing of it is left."""
    daemon = DaemonProcess(directory, server_url, *options)
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.clean_up()
