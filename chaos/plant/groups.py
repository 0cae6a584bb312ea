"""Control groups of a run: their processes can be kept from having more children and threads."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.plant.processes import threads_of

_VERSION_1: Final = Path("/sys/fs/cgroup/pids")
_VERSION_2: Final = Path("/sys/fs/cgroup")


def is_possible() -> bool:
    """True if this machine lets this process make groups that count processes."""
    probe = _home("self") / "holdline-chaos-probe"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return (probe / "pids.max").exists()
    finally:
        probe.rmdir()


def _home(pid: int | str) -> Path:
    """The group of a process: below it, groups of a run are made."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    found = {kinds: path for _number, kinds, path in (line.split(":", 2) for line in lines)}
    if "pids" in found:
        return _VERSION_1 / found["pids"].lstrip("/")
    return _VERSION_2 / found.get("", "/").lstrip("/")


class Group:
    """A group of some processes, and of all that they start while they are in it."""

    def __init__(self, name: str, pid: int) -> None:
        self._home = _home(pid)
        self._path = self._home / name
        self._members: list[int] = []
        self._path.mkdir()
        self.add(pid)

    def add(self, pid: int) -> None:
        """Take one more process into the group."""
        self._members.append(pid)
        _move(self._path, pid)

    def limit(self, spare: int) -> int:
        """Let the group have only so many more processes and threads; return how many it may."""
        # Children of the moment do not count: their places are free as soon as they are gone.
        most = sum(threads_of(pid) for pid in self._members) + spare
        (self._path / "pids.max").write_text(str(most))
        return most

    def close(self) -> None:
        """Give the processes back to where they came from, with all that they have started."""
        (self._path / "pids.max").write_text("max")
        while members := (self._path / "cgroup.procs").read_text().split():
            for pid in members:
                _move(self._home, int(pid))
        self._path.rmdir()


def _move(group: Path, pid: int) -> None:
    with suppress(ProcessLookupError):
        (group / "cgroup.procs").write_text(str(pid))
