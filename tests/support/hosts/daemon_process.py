"""A real daemon process for tests, which can be killed and cleaned up with its holders."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from controller_client.session_files.directory import SessionDirectory, all_sessions
from controller_client.system.termination import kill_leftovers
from tests.support.hosts.scripted_server import CREDENTIAL
from tests.support.waiting import await_until

ROOT = Path(__file__).resolve().parents[3]


class DaemonProcess:
    """``holdline-controller run`` as a child of the test; it can be started again after a kill."""

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
        """All log lines of all daemons that were started here."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    @property
    def pid(self) -> int:
        """The process id of the daemon that was started last."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Run another daemon on the same state directory."""
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "controller_client", "run", "--server", self._server_url),
                *(
                    "--credential-file",
                    str(self.credential_file),
                    "--state-dir",
                    str(self.state_dir),
                    "--allow-root",
                ),
                *self._options,
                stderr=log,
                cwd=ROOT,
            )

    async def kill(self) -> int:
        """Kill the daemon with SIGKILL, and return its exit code."""
        return await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """End the daemon with SIGTERM, and return its exit code."""
        return await self._end(signal.SIGTERM)

    async def wait(self) -> int:
        """Wait for a daemon that ends by itself, and return its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def _end(self, number: signal.Signals) -> int:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)
        return await self._process.wait()

    def sessions(self) -> list[SessionDirectory]:
        """The directories of all sessions of this host."""
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
            await await_until(
                lambda session=session: not session.is_holder_alive(), 90, "the holder to be dead"
            )


def holder_pids(session: SessionDirectory) -> list[int]:
    """The process id of a session's holder, in a list; an empty list if the holder is dead."""
    holder = session.read_holder()
    return [holder] if holder is not None and session.is_holder_alive() else []


@contextlib.asynccontextmanager
async def daemon_process(
    directory: Path, server_url: str, *options: str
) -> AsyncIterator[DaemonProcess]:
    """A daemon that runs with ``options``; after the block its processes are all gone."""
    daemon = DaemonProcess(directory, server_url, *options)
    await daemon.start()
    try:
        yield daemon
    finally:
        await daemon.clean_up()
