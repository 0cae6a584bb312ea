"""Processes of this machine, read from /proc: descendants, environments, descriptors, memory."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import wait_until

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
    """The children of ``pid``, their children, and so on."""
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
    """True if the process exists and is no zombie, or one with threads that have not ended."""
    state, threads = status_field(pid, "State"), status_field(pid, "Threads")
    return state is not None and (not state.startswith(("Z", "X")) or int(threads or 0) > 1)


def command_line(pid: int) -> str:
    """Arguments of a process joined by spaces; empty if it is gone."""
    with suppress(*_GONE):
        return (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode(errors="replace")
            .strip()
        )
    return ""


def describe(pid: int) -> str:
    """One line about a process, for a failure message."""
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
    return [
        pid
        for pid in all_pids()
        if text in command_line(pid) and is_running(pid) and pid != os.getpid()
    ]


def open_descriptors(pid: int) -> dict[int, str]:
    """The target of each open descriptor of a process; empty if the process is gone."""
    found: dict[int, str] = {}
    with suppress(*_GONE):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(*_GONE):
                found[int(entry.name)] = str(entry.readlink())
    return found


def resident_bytes(pid: int) -> int:
    """The resident set size of a process; 0 if it is gone."""
    return int((status_field(pid, "VmRSS") or "0 kB").split()[0]) * 1024


def proportional_bytes(pid: int) -> int:
    """The proportional set size of a process; 0 if it is gone.

    It is the private memory and a fair share of the shared memory.
    """
    with suppress(*_GONE):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pid: int) -> float:
    """The user and system time spent so far by a process; 0 if it is gone."""
    with suppress(*_GONE):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def send_signal(pid: int, number: signal.Signals) -> None:
    """Signal a process unless it is gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def pause(pid: int) -> None:
    """Stop a process, and return when it is stopped or gone."""
    send_signal(pid, signal.SIGSTOP)
    wait_until(
        lambda: (status_field(pid, "State") or "X")[0] in "TXZ",
        90,
        f"{describe(pid)} to stand still",
    )
