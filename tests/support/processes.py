"""Processes of the machine, read from /proc: who descends from whom, who carries which environment, how much memory."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_GONE = (FileNotFoundError, ProcessLookupError, PermissionError)


def all_pids() -> Iterator[int]:
    """Every process of this PID namespace."""
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def children_of(pid: int) -> set[int]:
    """Direct children of every thread of ``pid``; empty if it is gone."""
    found: set[int] = set()
    with suppress(*_GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(*_GONE):
                found |= {int(child) for child in (task / "children").read_text().split()}
    return found


def descendants_of(pid: int) -> set[int]:
    """Children, their children, and so on."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in children_of(todo.pop()) - found:
            found.add(child)
            todo.append(child)
    return found


def status_field(pid: int, field: str) -> str | None:
    """A field of /proc/<pid>/status such as ``State`` or ``Uid``; None if the process is gone."""
    with suppress(*_GONE):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == field:
                return value.strip()
    return None


def is_running(pid: int) -> bool:
    """Exists and is no zombie."""
    state = status_field(pid, "State")
    return state is not None and not state.startswith(("Z", "X"))


def command_line(pid: int) -> str:
    """Arguments of a process joined by spaces; empty if it is gone."""
    with suppress(*_GONE):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def describe(pid: int) -> str:
    """A line for a failure message."""
    return f"{pid} ({status_field(pid, 'State')}) {command_line(pid)[:120]}"


def pids_with_environment(needle: bytes) -> list[int]:
    """Live processes whose initial environment holds ``needle``, a whole ``NAME=value``."""
    found = []
    for pid in all_pids():
        with suppress(*_GONE):
            if needle in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and is_running(pid):
                found.append(pid)
    return found


def pids_mentioning(text: str) -> list[int]:
    """Live processes with ``text`` in their arguments."""
    return [pid for pid in all_pids() if text in command_line(pid) and is_running(pid) and pid != os.getpid()]


def open_descriptors(pid: int) -> dict[int, str]:
    """What each open descriptor of a process is; empty if it is gone."""
    found: dict[int, str] = {}
    with suppress(*_GONE):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(*_GONE):
                found[int(entry.name)] = str(entry.readlink())
    return found


def resident_bytes(pid: int) -> int:
    """Resident set; 0 if the process is gone."""
    return int((status_field(pid, "VmRSS") or "0 kB").split()[0]) * 1024


def proportional_bytes(pid: int) -> int:
    """Proportional set size: private memory plus a fair share of what is shared; 0 if the process is gone."""
    with suppress(*_GONE):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid: int) -> float:
    """User and system time spent so far; 0 if the process is gone."""
    with suppress(*_GONE):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def send_signal(pid: int, number: signal.Signals) -> None:
    """Signal a process unless it is gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)
