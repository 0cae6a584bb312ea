"""The processes of a run: started, harmed and started again by commands and signals only."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_GONE: Final = (FileNotFoundError, ProcessLookupError, PermissionError)
_STOP_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Command:
    """A command line, the variables of its environment, and where it is run."""

    arguments: list[str]
    environment: Mapping[str, str]
    directory: Path
    user: str | None = None


class Process:
    """One long-running process, which may be killed and started again."""

    def __init__(self, name: str, log: Path, command: Callable[[], Command]) -> None:
        self.name = name
        self.log = log
        self._command = command
        self._running: subprocess.Popen[bytes] | None = None
        self._log_begin = 0
        self.has_to_run = False
        """True from its start until somebody ends it: then it may not end by itself."""

    @property
    def pid(self) -> int | None:
        """The process id while the process runs."""
        running = self._running
        return running.pid if running is not None and running.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        """The code of the end; None if the process runs, or was never started."""
        return None if self._running is None else self._running.poll()

    def start(self) -> None:
        """Start the process unless it runs."""
        self.has_to_run = True
        if self.pid is not None:
            return
        command = self._command()
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self._running = subprocess.Popen(
                command.arguments,
                cwd=command.directory,
                env=dict(command.environment),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                user=command.user,
                group=command.user,
                extra_groups=None if command.user is None else [],
            )

    def said(self) -> str:
        """The log of the process since it was last started."""
        with self.log.open("rb") as log:
            log.seek(self._log_begin)
            return log.read().decode(errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if the process runs."""
        if self._running is not None and self.pid is not None:
            self._running.send_signal(number)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> float:
        """End the process with a signal, and return how long that took."""
        self.has_to_run = False
        began = asyncio.get_running_loop().time()
        if self._running is not None:
            self.send(signal.SIGCONT)
            self.send(number)
            try:
                await asyncio.to_thread(self._running.wait, _STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._running.kill()
                await asyncio.to_thread(self._running.wait)
        return asyncio.get_running_loop().time() - began


async def run(command: Command, seconds: float = 300.0) -> str:
    """Run a command to its end, and return what it printed. Raises RuntimeError if it fails."""
    process = await asyncio.create_subprocess_exec(
        *command.arguments,
        cwd=command.directory,
        env=dict(command.environment),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            printed, complaint = await process.communicate()
    except TimeoutError:
        process.kill()
        raise RuntimeError(f"{command.arguments} did not end in {seconds:.0f} s") from None
    if process.returncode:
        told = (printed + complaint).decode(errors="replace")[-2000:]
        raise RuntimeError(f"{command.arguments} exited with {process.returncode}: {told}")
    return printed.decode()


def arguments_of(pid: int) -> list[str]:
    """The command line of a process; empty if it is gone."""
    with suppress(*_GONE):
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    return []


def _status(pid: int, field: str) -> str:
    with suppress(*_GONE):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return line.partition(":")[2].strip()
    return ""


def is_alive(pid: int) -> bool:
    """True if the process exists and is no zombie."""
    return _status(pid, "State")[:1] not in {"", "Z", "X"}


def is_stopped(pid: int) -> bool:
    """True if a signal has stopped the process."""
    return _status(pid, "State")[:1] == "T"


def parent_of(pid: int) -> int:
    """The parent of a process; 0 if it is gone."""
    return int(_status(pid, "PPid") or 0)


def resident_bytes(pid: int) -> int:
    """The memory that a process has in use; 0 if it is gone."""
    return int((_status(pid, "VmRSS") or "0 kB").split()[0]) * 1024


def address_space_bytes(pid: int) -> int:
    """The address space that a process has mapped; 0 if it is gone."""
    return int((_status(pid, "VmSize") or "0 kB").split()[0]) * 1024


def threads_of(pid: int) -> int:
    """The number of threads of a process; 0 if it is gone."""
    return int(_status(pid, "Threads") or 0)


def descriptors_of(pid: int) -> int:
    """The number of open descriptors of a process; 0 if it is gone."""
    with suppress(*_GONE):
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return 0


def waited_seconds(pid: int) -> float:
    """The seconds that all threads of a process waited for a processor; 0 if it is gone."""
    found = 0
    with suppress(*_GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*_GONE):
                found += int((task / "schedstat").read_text().split()[1])
    return found / 1e9


def pids() -> Iterator[int]:
    """Every process of this machine."""
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def pids_with(*words: str) -> list[int]:
    """The living processes that have all of these words among their arguments."""
    return [pid for pid in pids() if set(words) <= set(arguments_of(pid)) and is_alive(pid)]


def pids_named(name: str) -> list[int]:
    """The living processes of this name."""
    return [pid for pid in pids() if _status(pid, "Name") == name and is_alive(pid)]


def files_of(pid: int, directory: Path) -> list[Path]:
    """The files below a directory that a process has open, and the one that it works in."""
    found = []
    with suppress(*_GONE):
        for link in [*Path(f"/proc/{pid}/fd").iterdir(), Path(f"/proc/{pid}/cwd")]:
            with suppress(*_GONE):
                found.append(link.readlink())
    return [path for path in found if directory in (path, *path.parents)]


def children_of(pid: int) -> list[int]:
    """The living children of a process."""
    return [each for each in pids() if parent_of(each) == pid and is_alive(each)]


def signal_all(found: list[int], number: signal.Signals) -> None:
    """Send a signal to each process that is still there."""
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
